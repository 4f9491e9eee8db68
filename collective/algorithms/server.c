/* SPDX-License-Identifier: Apache-2.0
 *
 * One parameter server, rank 0: it gets everything, adds, and sends the sum to everybody. Its N - 1
 * times the bytes are what other algorithms are there to avoid: a baseline. */
#include "base/numbers/integers.h"
#include "collective/algorithm.h"

static void plan_part(const struct pattern *p, struct comm_schedule *to, int lane, struct span part)
{
    struct span have = part;
    have.place = PLACE_INPUT;
    if (p->ranks == 1)
        step_add(to, lane, (struct step){0, 0, .send = have, .receive = part});
    if (p->rank > 0) {
        step_add(to, lane, (struct step){0, NOBODY, .send = have});
        step_add(to, lane, (struct step){NOBODY, 0, .receive = part});
        return;
    }
    for (int peer = 1; peer < p->ranks; peer++, have.place = PLACE_OUTPUT)
        step_add(to, lane,
                 (struct step){NOBODY, peer, .receive = part, .combines = true, .operand = have});
    for (int peer = 1; peer < p->ranks; peer++)
        step_add(to, lane, (struct step){peer, NOBODY, .send = part});
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segments = divide_up(whole.count, pattern->segment);
    for (int64_t k = 0; k < segments; k++)
        plan_part(pattern, to, (int)(k % pattern->lanes), span_part(whole, k, segments));
}

REGISTER(algorithm, server) = {
    .name = "server",
    .summary = "rank 0 adds for all: an unbalanced parameter server, as a baseline",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
