/* SPDX-License-Identifier: Apache-2.0
 *
 * Recursive halving, then recursive doubling: ranks exchange halves of what they are still
 * responsible for until each has reduced its own part, and then gather the parts the same way back.
 * The ring's bytes in 2 log2 N messages (Rabenseifner, ICCS 2004). */
#include "base/numbers/integers.h"
#include "collective/fold.h"

/* Parts first .. last - 1 of a span cut into `parts`. */
static struct span parts_of(struct span whole, int first, int last, int parts)
{
    struct span begin = span_part(whole, first, parts), end = span_part(whole, last - 1, parts);
    return (struct span){whole.place, begin.first, end.first + end.count - begin.first};
}

static void reduce_halves(const struct fold *fold, struct comm_schedule *to, int lane,
                          struct span part)
{
    enum place have = fold->holds;
    int first = 0, last = fold->power;
    for (int bit = fold->power / 2; bit > 0; bit /= 2) {
        int partner = fold_rank(fold, fold->index ^ bit);
        int middle = (first + last) / 2;
        bool upper = fold->index & bit;
        struct span low = parts_of(part, first, middle, fold->power);
        struct span high = parts_of(part, middle, last, fold->power);
        struct step step = {partner, partner, .send = upper ? low : high,
                            .receive = upper ? high : low, .combines = true};
        step.operand = step.receive;
        step.send.place = step.operand.place = have;
        step_add(to, lane, step);
        have = PLACE_OUTPUT;
        first = upper ? middle : first;
        last = upper ? last : middle;
    }
}

static void gather_halves(const struct fold *fold, struct comm_schedule *to, int lane,
                          struct span part)
{
    for (int bit = 1; bit < fold->power; bit *= 2) {
        int partner = fold_rank(fold, fold->index ^ bit);
        int first = fold->index & ~(bit - 1), other = first ^ bit;
        step_add(to, lane,
                 (struct step){partner, partner,
                               .send = parts_of(part, first, first + bit, fold->power),
                               .receive = parts_of(part, other, other + bit, fold->power)});
    }
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    struct fold fold = fold_of(pattern);
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segments = divide_up(whole.count, pattern->segment);
    for (int64_t k = 0; k < segments; k++) {
        int lane = (int)(k % pattern->lanes);
        struct span part = span_part(whole, k, segments);
        fold_in(&fold, to, lane, part);
        if (fold.index != NOBODY) {
            reduce_halves(&fold, to, lane, part);
            gather_halves(&fold, to, lane, part);
        }
        fold_out(&fold, to, lane, part);
    }
}

REGISTER(algorithm, rabenseifner) = {
    .name = "rabenseifner",
    .summary = "halves to a partner, then back: few messages and few bytes",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
