/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger of a transposed matrix reads the matrix itself, as Gemm does by its transB: ONNX
 * has no such attribute for integers, and the copy would cost more than packing does. */

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

/* What the node's right operand is the transpose of; NONE. */
static int absorbed_by(const struct graph *g, const struct node *node)
{
    int64_t perm[RANK_MAX];
    if (node->dead || node->op != &op_mat_mul_integer ||
        g->values[node->inputs[0]].shape.rank != 2 || node_int(node, "transB", 0))
        return NONE;
    const struct node *turn = rewrite_producer(g, node->inputs[1], &op_transpose);
    if (!turn || g->values[turn->inputs[0]].shape.rank != 2)
        return NONE;
    int count = node_ints(turn, "perm", perm, RANK_MAX);
    return count == 2 && perm[0] == 0 ? NONE : turn->inputs[0];
}

enum status pass_absorb_transpose(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added behind */
    for (int n = 0; n < count; n++) {
        struct node node = g->nodes[n];
        int b = absorbed_by(g, &node);
        if (b == NONE)
            continue;
        int inputs[4] = {node.inputs[0], b, NONE, NONE};
        for (int k = 2; k < node.op_inputs; k++)
            inputs[k] = node.inputs[k];
        g->phase = node.phase;
        int fresh = graph_node(g, op_mat_mul_integer.name, node.name, node.op_inputs, inputs,
                               ATTRS(attr_int("transB", 1)));
        if (g->failed)
            return graph_check(g, err);
        rewrite_replace(g, node.outputs[0], fresh);
    }
    return STATUS_OK;
}
