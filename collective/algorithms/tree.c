/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary tree: children's elements are added on the way up, the result goes down again. Segments
 * follow each other, so that for many of them every level is busy. Down lags behind up by the depth
 * of the tree: a rank has more segments to add while the first one is on its way to the root. */
#include "base/numbers/integers.h"
#include "collective/tree_steps.h"

static void all_reduce(const struct tree *tree, const struct pattern *pattern, int64_t segments)
{
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t lag = (int64_t)tree->depth * pattern->lanes;
    for (int64_t k = 0; k < segments + lag; k++)
        tree_all_reduce(tree, (int)(k % pattern->lanes), whole, k, segments, lag);
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
        tree_down(tree, lane, part, PLACE_INPUT);
    }
}

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    bool reduces = pattern->call->operation == COMM_ALL_REDUCE;
    struct tree tree = tree_of(pattern, to, reduces ? 0 : pattern->call->root, false);
    /* What a rank passes on whole need not be cut by the number of ranks, as a ring's segment is.
     */
    int64_t segment = pattern->segment / pattern->ranks;
    segment = segment > 0 ? segment : 1;
    int64_t segments = divide_up(pattern->call->count, segment);
    (reduces ? all_reduce : broadcast)(&tree, pattern, segments);
}

REGISTER(algorithm, tree) = {
    .name = "tree",
    .summary = "a binary tree, segment after segment: few messages deep",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE) | OPERATION_BIT(COMM_BROADCAST),
    .plan = plan,
};
