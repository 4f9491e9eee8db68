/* SPDX-License-Identifier: Apache-2.0
 *
 * In round k, rank r exchanges all it has with rank r ^ 2^k: log2 N messages, each as long as the
 * buffer. For small ones. Both partners add the same two numbers, so their bits are the same. */
#include "base/numbers/integers.h"
#include "collective/fold.h"

static void plan_part(const struct fold *fold, struct comm_schedule *to, int lane, struct span part)
{
    struct span have = part;
    have.place = fold->holds;
    fold_in(fold, to, lane, part);
    for (int bit = 1; bit < fold->power && fold->index != NOBODY; bit *= 2) {
        int partner = fold_rank(fold, fold->index ^ bit);
        step_add(to, lane,
                 (struct step){partner, partner, .send = have, .receive = part, .combines = true,
                               .operand = have});
        have = part;
    }
    fold_out(fold, to, lane, part);
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    struct fold fold = fold_of(pattern);
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segments = divide_up(whole.count, pattern->segment);
    for (int64_t k = 0; k < segments; k++)
        plan_part(&fold, to, (int)(k % pattern->lanes), span_part(whole, k, segments));
}

REGISTER(algorithm, recursive_doubling) = {
    .name = "recursive_doubling",
    .summary = "everything to a partner, twice as far each time: fewest messages",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
