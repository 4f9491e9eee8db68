/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of transposed matrices, or stacks of them, reads the matrices themselves, as Gemm does
 * by its transA and transB: ONNX has no such attributes for MatMul and MatMulInteger, and the copy
 * would cost more than packing does. The gradients of a product are such products. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

static const char *const names[] = {"transA", "transB"};

static bool understands(const struct op *op, const char *attr)
{
    bool product = op == &op_mat_mul || op == &op_gemm || op == &op_mat_mul_integer;
    for (int k = 0; product && op->attrs[k]; k++)
        if (strcmp(op->attrs[k], attr) == 0)
            return true;
    return false;
}

/* What a value is the transpose of, its last two axes exchanged; NONE. */
static int turned_from(const struct graph *g, int value)
{
    int64_t perm[RANK_MAX];
    const struct node *turn = rewrite_producer(g, value, &op_transpose);
    int rank = turn ? g->values[value].shape.rank : 0;
    if (rank < 2)
        return NONE;
    int count = node_ints(turn, "perm", perm, RANK_MAX);
    if (count == 0 && rank == 2) /* all axes, backwards */
        return turn->inputs[0];
    for (int k = 0; k < rank; k++)
        if (count != rank || perm[k] != (k < rank - 2 ? k : 2 * rank - 3 - k))
            return NONE;
    return turn->inputs[0];
}

/* Whether the zero points of bytes lie as the matrix of input k does: not as a list, so that they
 * would have to be turned, too. */
static bool is_tied(const struct graph *g, const struct node *node, int k)
{
    int zero =
        node->op == &op_mat_mul_integer && node->op_inputs > 2 + k ? node->inputs[2 + k] : NONE;
    const struct shape *shape = zero == NONE ? NULL : &g->values[zero].shape;
    return shape && shape->rank > 1 && shape_count(shape) > 1;
}

/* Turns an attribute over that is 0 where it is absent. */
static enum status flip(struct graph *g, struct node *node, const char *name, struct error *err)
{
    if (!graph_set_attr(g, node, attr_int(name, !node_int(node, name, 0))))
        return FAIL_NO_MEMORY(err);
    return STATUS_OK;
}

enum status pass_absorb_transpose(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        for (int k = 0; k < ARRAY_COUNT(names) && !node->dead; k++) {
            bool can = understands(node->op, names[k]) && !is_tied(g, node, k);
            int from = can ? turned_from(g, node->inputs[k]) : NONE;
            for (; from != NONE; from = turned_from(g, from)) {
                node->inputs[k] = from;
                TRY(flip(g, node, names[k], err));
            }
        }
    }
    return STATUS_OK;
}
