/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that read only weights and constants are computed once, here. */
#include "engine/compile/passes/rewrite.h"
#include "engine/reference/fold.h"

static bool all_fixed(const struct graph *g, const struct node *node)
{
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] != NONE && !value_is_fixed(&g->values[node->inputs[k]]))
            return false;
    return node->input_count > 0 && !node->op->random;
}

enum status pass_fold_constants(struct graph *g, struct error *err)
{
    const struct fold_limits limits = {.elements = (int64_t)1 << 24, .flops = 1e9};
    for (int n = 0; n < g->node_count; n++) {
        struct error why;
        if (g->nodes[n].dead || !all_fixed(g, &g->nodes[n]))
            continue;
        enum status status = fold_node(g, n, &limits, &why);
        if (status == STATUS_OK || status == STATUS_UNSUPPORTED) /* the node stays and runs */
            continue;
        *err = why;
        return status;
    }
    return STATUS_OK;
}
