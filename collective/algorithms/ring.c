/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rank sends to the next and receives from the one before. Of N ranks, each sends
 * 2 (N - 1) / N of an all-reduce's bytes, which is the least that is possible, in 2 (N - 1)
 * messages (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009). Segment after segment goes
 * round whole, so that what was just reduced is still in a cache when it is sent on. */
#include "base/numbers/integers.h"
#include "collective/algorithm.h"

struct ring {
    const struct pattern *pattern;
    struct comm_schedule *to;
    int next, before; /* ranks */
    int64_t segments;
};

static int wrap(const struct ring *ring, int index)
{
    int ranks = ring->pattern->ranks;
    return ((index % ranks) + ranks) % ranks;
}

static struct span in_place(enum place place, struct span span)
{
    span.place = place;
    return span;
}

/* A chunk is what the ring reduces in one rank, or gathers from one. */
static struct step pass(const struct ring *ring, struct span send, struct span receive)
{
    return (struct step){ring->next, ring->before, .send = send, .receive = receive};
}

static struct step pass_and_add(const struct ring *ring, struct span send, struct span receive,
                                struct span operand)
{
    struct step step = pass(ring, send, receive);
    step.combines = true;
    step.operand = operand;
    return step;
}

static void copy_own(const struct ring *ring, int lane, struct span from, struct span to)
{
    int rank = ring->pattern->rank;
    step_add(ring->to, lane, (struct step){rank, rank, .send = from, .receive = to});
}

/* Of two ranks each reduces what the other gets back: one step. */
static void all_reduce_pair(const struct ring *ring, int lane, struct span part)
{
    const struct pattern *p = ring->pattern;
    struct span given = span_part(part, p->rank, 2), kept = span_part(part, 1 - p->rank, 2);
    struct step step =
        pass_and_add(ring, in_place(PLACE_INPUT, given), kept, in_place(PLACE_INPUT, kept));
    step.returns = true;
    step.back = given;
    step_add(ring->to, lane, step);
}

/* After reducing, rank r holds the sum of chunk r + 1; from there it goes round. */
static void all_reduce(const struct ring *ring, int lane, int64_t segment)
{
    const struct pattern *p = ring->pattern;
    struct span whole = {PLACE_OUTPUT, 0, p->call->count};
    struct span part = span_part(whole, segment, ring->segments);
    if (p->ranks == 1)
        copy_own(ring, lane, in_place(PLACE_INPUT, part), part);
    if (p->ranks == 2) {
        all_reduce_pair(ring, lane, part);
        return;
    }
    for (int s = 0; s < p->ranks - 1; s++) {
        struct span send = span_part(part, wrap(ring, p->rank - s), p->ranks);
        struct span receive = span_part(part, wrap(ring, p->rank - s - 1), p->ranks);
        if (s == 0)
            send.place = PLACE_INPUT;
        step_add(ring->to, lane, pass_and_add(ring, send, receive, in_place(PLACE_INPUT, receive)));
    }
    for (int s = 0; s < p->ranks - 1; s++)
        step_add(ring->to, lane,
                 pass(ring, span_part(part, wrap(ring, p->rank + 1 - s), p->ranks),
                      span_part(part, wrap(ring, p->rank - s), p->ranks)));
}

static struct span chunk_of(const struct ring *ring, enum place place, int rank, int64_t segment)
{
    const int64_t *counts = ring->pattern->call->counts;
    struct span chunk = {place, counts_before(counts, rank), counts[rank]};
    return span_part(chunk, segment, ring->segments);
}

/* Sums on their way lie in scratch memory: one is sent while the next is received. */
static void reduce_scatter(const struct ring *ring, int lane, int64_t segment)
{
    const struct pattern *p = ring->pattern;
    int64_t slot = ring->to->length[PLACE_SCRATCH] / (2 * p->lanes);
    struct span own = {PLACE_OUTPUT, 0, p->call->counts[p->rank]};
    own = span_part(own, segment, ring->segments);
    if (p->ranks == 1)
        copy_own(ring, lane, chunk_of(ring, PLACE_INPUT, 0, segment), own);
    struct span send = chunk_of(ring, PLACE_INPUT, wrap(ring, p->rank - 1), segment);
    for (int s = 0; s < p->ranks - 1; s++) {
        struct span operand = chunk_of(ring, PLACE_INPUT, wrap(ring, p->rank - s - 2), segment);
        struct span receive = {PLACE_SCRATCH, (2 * lane + s % 2) * slot, operand.count};
        if (s == p->ranks - 2)
            receive = own;
        step_add(ring->to, lane, pass_and_add(ring, send, receive, operand));
        send = receive;
    }
}

static void all_gather(const struct ring *ring, int lane, int64_t segment)
{
    const struct pattern *p = ring->pattern;
    struct span own = {PLACE_INPUT, 0, p->call->counts[p->rank]};
    own = span_part(own, segment, ring->segments);
    copy_own(ring, lane, own, chunk_of(ring, PLACE_OUTPUT, p->rank, segment));
    struct span send = own;
    for (int s = 0; s < p->ranks - 1; s++) {
        struct span receive = chunk_of(ring, PLACE_OUTPUT, wrap(ring, p->rank - s - 1), segment);
        step_add(ring->to, lane, pass(ring, send, receive));
        send = receive;
    }
}

/* A chain from the root on: while a segment is received the one before it is sent. */
static void broadcast(const struct ring *ring, int lane, int64_t segment)
{
    const struct pattern *p = ring->pattern;
    int position = wrap(ring, p->rank - p->call->root);
    struct span whole = {PLACE_OUTPUT, 0, p->call->count};
    struct span now = span_part(whole, segment, ring->segments);
    struct step step = {NOBODY, NOBODY, .receive = now};
    if (position == 0) {
        struct span input = in_place(PLACE_INPUT, now);
        copy_own(ring, lane, input, now);
        step.to = p->ranks > 1 ? ring->next : NOBODY;
        step.send = input;
        step_add(ring->to, lane, step);
        return;
    }
    bool sends = position < p->ranks - 1;
    step.from = ring->before;
    if (sends && segment >= p->lanes) {
        step.to = ring->next;
        step.send = span_part(whole, segment - p->lanes, ring->segments);
    }
    step_add(ring->to, lane, step);
    if (sends && segment + p->lanes >= ring->segments) /* the last one in its lane */
        step_add(ring->to, lane, (struct step){ring->next, NOBODY, .send = now});
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    static void (*const parts[COMM_OPERATION_COUNT])(const struct ring *, int, int64_t) = {
        [COMM_ALL_REDUCE] = all_reduce,
        [COMM_REDUCE_SCATTER] = reduce_scatter,
        [COMM_ALL_GATHER] = all_gather,
        [COMM_BROADCAST] = broadcast,
    };
    const struct comm_call *call = pattern->call;
    struct ring ring = {pattern, to, .segments = 1};
    ring.next = wrap(&ring, pattern->rank + 1);
    ring.before = wrap(&ring, pattern->rank - 1);
    int64_t whole = call_whole_count(call, pattern->ranks);
    if (whole > pattern->segment)
        ring.segments = divide_up(whole, pattern->segment);
    if (call->operation == COMM_REDUCE_SCATTER) {
        int64_t largest = 0;
        for (int k = 0; k < pattern->ranks; k++)
            largest = call->counts[k] > largest ? call->counts[k] : largest;
        int64_t slot = divide_up(largest, ring.segments);
        to->length[PLACE_SCRATCH] = 2 * pattern->lanes * slot;
    }
    for (int64_t segment = 0; segment < ring.segments; segment++)
        parts[call->operation](&ring, (int)(segment % pattern->lanes), segment);
}

REGISTER(algorithm, ring) = {
    .name = "ring",
    .summary = "each rank sends to the next: fewest bytes",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE) | OPERATION_BIT(COMM_REDUCE_SCATTER) |
                  OPERATION_BIT(COMM_ALL_GATHER) | OPERATION_BIT(COMM_BROADCAST),
    .plan = plan,
};
