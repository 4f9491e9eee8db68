/* SPDX-License-Identifier: Apache-2.0
 *
 * What was turned and is turned back is read where it lay at first. Files of models have the heads
 * of attention before their positions, the operator of ours behind them: between the two lie pairs
 * of Transposes that come to nothing. A Transpose that only moves axes of size 1 is a Reshape. */
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"

enum { MOVES_MAX = 6 };

/* Outputs have memory of their own, and how many entries of a padded result are real is told along
 * an axis. */
static bool may_go(const struct graph *g, int value)
{
    return !rewrite_is_output(g, value) && g->values[value].count == NONE;
}

/* What has the same elements in the same order: under the same shape, or as far back as it is
 * found; NONE. A Reshape costs nothing: it goes only when it leads back. */
static int unmoved(const struct graph *g, const struct node *node)
{
    int value = node->outputs[0], found = NONE;
    for (int moves = 1; moves <= MOVES_MAX; moves++) {
        struct view view;
        view_of(g, value, moves, &view);
        if (view.origin == value || view.factor != 1 || !view_is_whole(g, &view))
            continue;
        if (shape_equal(&g->values[view.origin].shape, &g->values[value].shape))
            return view.origin;
        if (node->op == &op_transpose)
            found = view.origin;
    }
    return found;
}

static int shaped_as(struct graph *g, int from, int value)
{
    const struct shape shape = g->values[value].shape;
    if (shape_equal(&g->values[from].shape, &shape))
        return from;
    return graph_node(g, op_reshape.name, NULL,
                      INPUTS(from, graph_const_i64(g, shape.rank, shape.dim)), NO_ATTRS);
}

enum status pass_undo_moves(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        const struct node *node = &g->nodes[n];
        bool moves = node->op == &op_transpose || node->op == &op_reshape;
        if (node->dead || node->post_count || !moves || !may_go(g, node->outputs[0]))
            continue;
        int old = node->outputs[0], from = unmoved(g, node);
        if (from == NONE)
            continue;
        g->phase = node->phase;
        int fresh = shaped_as(g, from, old);
        if (g->failed)
            return graph_check(g, err);
        rewrite_replace(g, old, fresh);
    }
    return STATUS_OK;
}
