/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rank is the parameter server of an equal part: it gets that part from all others, adds, and
 * sends the sum to all. A ring's bytes in two rounds of N - 1 messages at a time, whatever way the
 * network takes them. */
#include "base/numbers/integers.h"
#include "collective/algorithm.h"

struct servers {
    const struct pattern *pattern;
    struct comm_schedule *to;
    int lane;
    struct span part;
};

static struct span share(const struct servers *s, enum place place, int rank)
{
    struct span span = span_part(s->part, rank, s->pattern->ranks);
    span.place = place;
    return span;
}

/* In round k, rank r turns to rank r + k, and rank r - k to it. */
static void push(const struct servers *s, int to, int from, bool first)
{
    int rank = s->pattern->rank;
    step_add(s->to, s->lane,
             (struct step){to, from, .send = share(s, PLACE_INPUT, to),
                           .receive = share(s, PLACE_OUTPUT, rank), .combines = true,
                           .operand = share(s, first ? PLACE_INPUT : PLACE_OUTPUT, rank)});
}

static void pull(const struct servers *s, int to, int from)
{
    step_add(s->to, s->lane,
             (struct step){to, from, .send = share(s, PLACE_OUTPUT, s->pattern->rank),
                           .receive = share(s, PLACE_OUTPUT, from)});
}

static void plan_part(const struct servers *s)
{
    int rank = s->pattern->rank, ranks = s->pattern->ranks;
    struct span input = s->part;
    input.place = PLACE_INPUT;
    if (ranks == 1)
        step_add(s->to, s->lane, (struct step){0, 0, .send = input, .receive = s->part});
    for (int k = 1; k < ranks; k++)
        push(s, (rank + k) % ranks, (rank - k + ranks) % ranks, k == 1);
    for (int k = 1; k < ranks; k++)
        pull(s, (rank + k) % ranks, (rank - k + ranks) % ranks);
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segments = divide_up(whole.count, pattern->segment);
    for (int64_t k = 0; k < segments; k++) {
        struct servers servers = {pattern, to, (int)(k % pattern->lanes),
                                  span_part(whole, k, segments)};
        plan_part(&servers);
    }
}

REGISTER(algorithm, servers) = {
    .name = "servers",
    .summary = "each rank adds an equal part for all: balanced parameter servers",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
