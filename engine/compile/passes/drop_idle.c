/* SPDX-License-Identifier: Apache-2.0
 *
 * Exporters convert floats to the type that they have, slice from begin to end, reshape to the
 * shape that was there and put nothing beside something. Who reads such a result reads its input
 * instead: fewer copies, and patterns are seen across it. */
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"

/* Outputs have names, and states keep what they are told to. */
static bool is_kept(const struct graph *g, int value)
{
    if (rewrite_is_output(g, value))
        return true;
    for (int s = 0; s < g->state_count; s++)
        if (g->states[s].after == value)
            return true;
    return false;
}

/* How many entries of it are real, where that is told, included. */
static bool same_tensor(const struct graph *g, int a, int b)
{
    return a != NONE && g->values[a].dtype == g->values[b].dtype &&
           g->values[a].count == g->values[b].count &&
           shape_equal(&g->values[a].shape, &g->values[b].shape);
}

/* The part of a Concat beside which all others are empty; NONE. */
static int only_part(const struct graph *g, const struct node *concat)
{
    for (int k = 0; k < concat->input_count; k++)
        if (same_tensor(g, concat->inputs[k], concat->outputs[0]))
            return concat->inputs[k];
    return NONE;
}

/* The input that a node gives back; NONE. */
static int given_back(const struct graph *g, const struct node *node)
{
    if (node->dead || node->post_count || node->input_count == 0 || node->output_count != 1 ||
        is_kept(g, node->outputs[0]) || shape_count(&g->values[node->outputs[0]].shape) == 0)
        return NONE;
    if (node->op == &op_concat)
        return only_part(g, node);
    if (!same_tensor(g, node->inputs[0], node->outputs[0]))
        return NONE;
    if (node->op == &op_cast)
        return node->inputs[0];
    struct view view;
    view_whole(g, node->inputs[0], &view);
    bool idle = (node->op->move || node->op->alias) && view_through(g, node, &view) &&
                view_is_whole(g, &view);
    return idle ? node->inputs[0] : NONE;
}

enum status pass_drop_idle(struct graph *g, struct error *err)
{
    (void)err;
    for (int n = 0; n < g->node_count; n++) {
        int input = given_back(g, &g->nodes[n]);
        if (input == NONE)
            continue;
        rewrite_replace(g, g->nodes[n].outputs[0], input);
        g->nodes[n].dead = true;
    }
    return STATUS_OK;
}
