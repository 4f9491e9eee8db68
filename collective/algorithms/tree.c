/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary tree: children's elements are added on the way up, the result goes down again. Segments
 * follow each other, so that for many of them every level is busy. Down lags behind up by the depth
 * of the tree: a rank has more segments to add while the first one is on its way to the root. */
#include "collective/algorithm.h"

struct tree {
    struct comm_schedule *to;
    int parent, children[2]; /* ranks, or NOBODY */
    int depth;
};

static struct tree tree_of(const struct pattern *pattern, struct comm_schedule *to, int root)
{
    int ranks = pattern->ranks, place = (pattern->rank - root + ranks) % ranks;
    struct tree tree = {to, NOBODY, {NOBODY, NOBODY}, 0};
    if (place > 0)
        tree.parent = ((place - 1) / 2 + root) % ranks;
    for (int k = 0; k < 2; k++)
        if (2 * place + 1 + k < ranks)
            tree.children[k] = (2 * place + 1 + k + root) % ranks;
    for (int last = ranks - 1; last > 0; last = (last - 1) / 2)
        tree.depth++;
    return tree;
}

static void up(const struct tree *tree, int lane, struct span part)
{
    struct span have = part;
    have.place = PLACE_INPUT;
    if (tree->to->ranks == 1)
        step_add(tree->to, lane,
                 (struct step){tree->to->rank, tree->to->rank, .send = have, .receive = part});
    for (int k = 0; k < 2; k++) {
        if (tree->children[k] == NOBODY)
            continue;
        step_add(tree->to, lane,
                 (struct step){NOBODY, tree->children[k], .receive = part, .combines = true,
                               .operand = have});
        have = part;
    }
    step_add(tree->to, lane, (struct step){tree->parent, NOBODY, .send = have});
}

/* `have`: where the root has it. */
static void down(const struct tree *tree, int lane, struct span part, enum place have)
{
    step_add(tree->to, lane, (struct step){NOBODY, tree->parent, .receive = part});
    struct span send = part;
    send.place = tree->parent == NOBODY ? have : PLACE_OUTPUT;
    for (int k = 0; k < 2; k++)
        step_add(tree->to, lane, (struct step){tree->children[k], NOBODY, .send = send});
}

static void all_reduce(const struct tree *tree, const struct pattern *pattern, int64_t segments)
{
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t lag = (int64_t)tree->depth * pattern->lanes;
    for (int64_t k = 0; k < segments + lag; k++) {
        if (k < segments)
            up(tree, (int)(k % pattern->lanes), span_part(whole, k, segments));
        if (k >= lag)
            down(tree, (int)(k % pattern->lanes), span_part(whole, k - lag, segments),
                 PLACE_OUTPUT);
    }
}

static void broadcast(const struct tree *tree, const struct pattern *pattern, int64_t segments)
{
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    for (int64_t k = 0; k < segments; k++) {
        struct span part = span_part(whole, k, segments), input = part;
        int lane = (int)(k % pattern->lanes), own = pattern->rank;
        input.place = PLACE_INPUT;
        if (tree->parent == NOBODY)
            step_add(tree->to, lane, (struct step){own, own, .send = input, .receive = part});
        down(tree, lane, part, PLACE_INPUT);
    }
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    bool reduces = pattern->call->operation == COMM_ALL_REDUCE;
    struct tree tree = tree_of(pattern, to, reduces ? 0 : pattern->call->root);
    /* What a rank passes on whole need not be cut by the number of ranks, as a ring's segment is.
     */
    int64_t segment = pattern->segment / pattern->ranks;
    segment = segment > 0 ? segment : 1;
    int64_t segments = (pattern->call->count + segment - 1) / segment;
    (reduces ? all_reduce : broadcast)(&tree, pattern, segments);
}

REGISTER(algorithm, tree) = {
    .name = "tree",
    .summary = "a binary tree, segment after segment: few messages deep",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE) | OPERATION_BIT(COMM_BROADCAST),
    .plan = plan,
};
