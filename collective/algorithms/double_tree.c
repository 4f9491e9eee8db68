/* SPDX-License-Identifier: Apache-2.0
 *
 * Two binary trees, each for half of the elements: the second one counts ranks from the other end,
 * so that leaves of one are within the other, and every rank sends and receives about as much
 * (Sanders, Speck and Traeff, Parallel Computing 35, 2009). The trees are in lanes of their own. */
#include "collective/tree_steps.h"

static void plan(const struct pattern *pattern, struct comm_schedule *to)
{
    struct tree trees[] = {tree_of(pattern, to, 0, false),
                           tree_of(pattern, to, pattern->ranks - 1, true)};
    struct span whole = {PLACE_OUTPUT, 0, pattern->call->count};
    int64_t segment = pattern->segment / pattern->ranks;
    int64_t segments = whole.count / 2 / (segment > 0 ? segment : 1) + 1;
    int pairs = pattern->lanes / 2 > 0 ? pattern->lanes / 2 : 1;
    int64_t lag = (int64_t)trees[0].depth * pairs;
    for (int64_t k = 0; k < segments + lag; k++)
        for (int half = 0; half < 2; half++)
            tree_all_reduce(&trees[half], 2 * (int)(k % pairs) + half, span_part(whole, half, 2), k,
                            segments, lag);
}

REGISTER(algorithm, double_tree) = {
    .name = "double_tree",
    .summary = "two binary trees, half of the elements each: few messages, all ranks busy",
    .operations = OPERATION_BIT(COMM_ALL_REDUCE),
    .plan = plan,
};
