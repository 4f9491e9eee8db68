/* SPDX-License-Identifier: Apache-2.0
 *
 * Everybody with everybody: in round k, rank r sends to r + k what that one is to have and receives
 * from r - k. For all-to-all nothing else is possible without sending elements twice. */
#include "collective/algorithm.h"

static struct span part_of(enum place place, const int64_t *counts, int index)
{
    return (struct span){place, counts_before(counts, index), counts[index]};
}

static struct span row_part(const struct pattern *p, int peer)
{
    return part_of(PLACE_INPUT, p->call->counts + (int64_t)p->rank * p->ranks, peer);
}

static struct span column_part(const struct pattern *p, int peer)
{
    struct span span = {PLACE_OUTPUT, 0, p->call->counts[peer * p->ranks + p->rank]};
    for (int k = 0; k < peer; k++)
        span.first += p->call->counts[k * p->ranks + p->rank];
    return span;
}

/* What goes to rank `to` and what comes from rank `from` in one round. */
static struct step round_of(const struct pattern *p, int to, int from)
{
    const int64_t *counts = p->call->counts;
    if (p->call->operation == COMM_ALL_TO_ALL)
        return (struct step){to, from, .send = row_part(p, to), .receive = column_part(p, from)};
    struct span own_input = {PLACE_INPUT, 0, counts[p->rank]};
    if (p->call->operation == COMM_ALL_GATHER)
        return (struct step){to, from, .send = own_input,
                             .receive = part_of(PLACE_OUTPUT, counts, from)};
    struct span sum = {PLACE_OUTPUT, 0, counts[p->rank]};
    struct step step = {to, from, .send = part_of(PLACE_INPUT, counts, to), .receive = sum};
    if (from != p->rank) {
        step.combines = true;
        step.operand = sum;
    }
    return step;
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    int ranks = pattern->ranks;
    for (int k = 0; k < ranks; k++) {
        /* Sums of one part are made one after another. */
        int lane = pattern->call->operation == COMM_REDUCE_SCATTER ? 0 : k % pattern->lanes;
        step_add(
            to, lane,
            round_of(pattern, (pattern->rank + k) % ranks, (pattern->rank - k + ranks) % ranks));
    }
}

REGISTER(algorithm, pairwise) = {
    .name = "pairwise",
    .summary = "each rank with each other one",
    .operations = OPERATION_BIT(COMM_ALL_TO_ALL) | OPERATION_BIT(COMM_ALL_GATHER) |
                  OPERATION_BIT(COMM_REDUCE_SCATTER),
    .plan = plan,
};
