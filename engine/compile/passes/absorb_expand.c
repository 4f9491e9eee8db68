/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and products broadcast by themselves: where another operand has the shape of the result,
 * one that was expanded to it is read as it was before, and not written out. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

static bool broadcasts(const struct node *node)
{
    return !node->dead && node->op->function && function_info(node->op->function)->operands == 2 &&
           node->op_inputs >= 2;
}

/* Whether the result is the same with value x as operand k. */
static bool fits(const struct graph *g, const struct node *node, int k, int x)
{
    struct shape shape = g->values[x].shape;
    for (int i = 0; i < node->op_inputs; i++)
        if (i != k && !shape_broadcast(&shape, &g->values[node->inputs[i]].shape, &shape))
            return false;
    return shape_equal(&shape, &g->values[node->outputs[0]].shape);
}

enum status pass_absorb_expand(struct graph *g, struct error *err)
{
    (void)err;
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        for (int k = 0; broadcasts(node) && k < node->op_inputs; k++) {
            const struct node *expand = rewrite_producer(g, node->inputs[k], &op_expand);
            if (expand && fits(g, node, k, expand->inputs[0]))
                node->inputs[k] = expand->inputs[0];
        }
    }
    return STATUS_OK;
}
