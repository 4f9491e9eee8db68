/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside each node first, then between nodes. Where all nodes have as many ranks, a ring in each
 * node leaves every rank with the node's sum of a part; rings of the ranks that have the same part
 * add them between nodes; rings in the nodes gather them. So a node's link carries 2 (M - 1) / M of
 * the bytes, M nodes, whatever the order of ranks is. Where the last node has fewer, the first rank
 * of each node adds for it, and these form a ring. Ranks of a node follow each other. */
#include "collective/algorithm.h"

/* Some ranks in a ring: this is number `index` of `count`. */
struct circle {
    struct comm_schedule *to;
    int lane, index, count;
    int next, before; /* ranks */
};

static int wrap(const struct circle *circle, int index)
{
    return (index % circle->count + circle->count) % circle->count;
}

/* Number k of the circle is rank first + k stride. */
static struct circle circle_of(struct comm_schedule *to, int lane, int first, int stride, int index,
                               int count)
{
    struct circle circle = {to, lane, index, count, NOBODY, NOBODY};
    circle.next = first + wrap(&circle, index + 1) * stride;
    circle.before = first + wrap(&circle, index - 1) * stride;
    return circle;
}

/* Leaves number k with the sum of piece k + 1. `have`: where the elements are to begin with. */
static void reduce(const struct circle *c, struct span part, enum place have)
{
    for (int s = 0; s < c->count - 1; s++) {
        struct span send = span_part(part, wrap(c, c->index - s), c->count);
        struct span receive = span_part(part, wrap(c, c->index - s - 1), c->count);
        struct span operand = receive;
        operand.place = have;
        send.place = s == 0 ? have : PLACE_OUTPUT;
        step_add(c->to, c->lane,
                 (struct step){c->next, c->before, .send = send, .receive = receive,
                               .combines = true, .operand = operand});
    }
}

static void gather(const struct circle *c, struct span part)
{
    for (int s = 0; s < c->count - 1; s++)
        step_add(c->to, c->lane,
                 (struct step){c->next, c->before,
                               .send = span_part(part, wrap(c, c->index + 1 - s), c->count),
                               .receive = span_part(part, wrap(c, c->index - s), c->count)});
}

static void even_nodes(const struct pattern *p, struct comm_schedule *to, int lane,
                       struct span part, int size)
{
    int node = p->rank / size, local = p->rank % size;
    struct circle inside = circle_of(to, lane, node * size, 1, local, size);
    struct circle across = circle_of(to, lane, local, size, node, p->ranks / size);
    struct span own = span_part(part, wrap(&inside, local + 1), size);
    reduce(&inside, part, PLACE_INPUT);
    reduce(&across, own, size > 1 ? PLACE_OUTPUT : PLACE_INPUT);
    gather(&across, own);
    gather(&inside, part);
}

static void uneven_nodes(const struct pattern *p, struct comm_schedule *to, int lane,
                         struct span part, int size)
{
    int node = p->rank / size, leader = node * size, nodes = (p->ranks + size - 1) / size;
    int last = leader + size < p->ranks ? leader + size : p->ranks;
    struct circle across = circle_of(to, lane, 0, size, node, nodes);
    struct span have = part;
    have.place = PLACE_INPUT;
    if (p->rank != leader) {
        step_add(to, lane, (struct step){leader, NOBODY, .send = have});
        step_add(to, lane, (struct step){NOBODY, leader, .receive = part});
        return;
    }
    for (int peer = leader + 1; peer < last; peer++, have.place = PLACE_OUTPUT)
        step_add(to, lane,
                 (struct step){NOBODY, peer, .receive = part, .combines = true, .operand = have});
    reduce(&across, part, have.place);
    gather(&across, part);
    for (int peer = leader + 1; peer < last; peer++)
        step_add(to, lane, (struct step){peer, NOBODY, .send = part});
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    int size = pattern->node_ranks < pattern->ranks ? pattern->node_ranks : pattern->ranks;
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segments = (whole.count + pattern->segment - 1) / pattern->segment;
    for (int64_t k = 0; k < segments; k++) {
        int lane = (int)(k % pattern->lanes);
        struct span part = span_part(whole, k, segments), input = part;
        input.place = PLACE_INPUT;
        if (pattern->ranks == 1)
            step_add(to, lane, (struct step){0, 0, .send = input, .receive = part});
        else if (pattern->ranks % size == 0)
            even_nodes(pattern, to, lane, part, size);
        else
            uneven_nodes(pattern, to, lane, part, size);
    }
}

REGISTER(algorithm, hierarchical) = {
    .name = "hierarchical",
    .summary = "rings inside nodes, then between them: fewest bytes on each node's link",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
