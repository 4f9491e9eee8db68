/* SPDX-License-Identifier: Apache-2.0
 *
 * Exporters convert floats to the type that they have, slice from begin to end and reshape to the
 * shape that was there. Who reads such a result reads its input instead: fewer copies, and patterns
 * are seen across it. */
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"

/* Outputs have names, and states keep what they are told to. */
static bool is_kept(const struct graph *g, int value)
{
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == value)
            return true;
    for (int s = 0; s < g->state_count; s++)
        if (g->states[s].after == value)
            return true;
    return false;
}

static bool is_idle(const struct graph *g, const struct node *node)
{
    if (node->dead || node->post_count || node->input_count == 0 || node->inputs[0] == NONE ||
        node->output_count != 1 || is_kept(g, node->outputs[0]))
        return false;
    const struct value *from = &g->values[node->inputs[0]], *to = &g->values[node->outputs[0]];
    if (from->dtype != to->dtype || !shape_equal(&from->shape, &to->shape))
        return false;
    if (node->op == &op_cast)
        return true;
    if (!node->op->move && !node->op->alias)
        return false;
    struct view view;
    view_whole(g, node->inputs[0], &view);
    return shape_count(&from->shape) && view_through(g, node, &view) && view_is_whole(g, &view);
}

enum status pass_drop_idle(struct graph *g, struct error *err)
{
    (void)err;
    for (int n = 0; n < g->node_count; n++) {
        if (!is_idle(g, &g->nodes[n]))
            continue;
        rewrite_replace(g, g->nodes[n].outputs[0], g->nodes[n].inputs[0]);
        g->nodes[n].dead = true;
    }
    return STATUS_OK;
}
