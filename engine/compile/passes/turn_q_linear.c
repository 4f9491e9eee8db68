/* SPDX-License-Identifier: Apache-2.0
 *
 * QLinearConv and QLinearMatMul say in one node what others say by DequantizeLinear, Conv or
 * MatMul, and QuantizeLinear. They become these, for which there are kernels, and passes that join
 * them again (absorb_bytes.c). */
#include <stdlib.h>

#include "engine/compile/passes/quantised.h"
#include "engine/graph/op_list.h"

/* Inputs of both; QLinearConv's bias comes after them. */
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS };

static bool is_one(const struct graph *g, int v)
{
    return shape_count(&g->values[v].shape) == 1;
}

/* A bias in units of x's times the weights' scale, as floats; NONE: something is not known. */
static int float_bias(struct graph *g, const struct node *node)
{
    double *codes = quantised_numbers(g, node->inputs[BIAS]);
    double *scales = quantised_numbers(g, node->inputs[B_SCALE]), unit;
    int64_t count = shape_count(&g->values[node->inputs[BIAS]].shape);
    bool one = is_one(g, node->inputs[B_SCALE]);
    float *floats = malloc((size_t)count * sizeof(*floats) + 1);
    bool known = codes && scales && floats && rewrite_scalar(g, node->inputs[A_SCALE], &unit);
    for (int64_t k = 0; known && k < count; k++)
        floats[k] = (float)(codes[k] * unit * scales[one ? 0 : k]);
    free(scales);
    free(codes);
    if (known)
        return rewrite_weight(g, "bias", shape_of(count), floats);
    free(floats);
    return NONE;
}

/* Input k and its scale and zero point, as floats. */
static int dequantise(struct graph *g, const struct node *node, int k, int64_t axis)
{
    return graph_node(g, op_dequantize_linear.name, NULL,
                      INPUTS(node->inputs[k], node->inputs[k + 1], node->inputs[k + 2]),
                      ATTRS(attr_int("axis", axis)));
}

/* Whether scales and zero points are such that DequantizeLinear takes them: of all of a, of all of
 * b or one per index of its axis. */
static bool is_usual(const struct graph *g, const struct node *node, int64_t axis)
{
    const struct shape *b = &g->values[node->inputs[B]].shape;
    bool list = !is_one(g, node->inputs[B_SCALE]);
    const struct shape *scale = &g->values[node->inputs[B_SCALE]].shape;
    const struct shape *zero = &g->values[node->inputs[B_ZERO]].shape;
    return is_one(g, node->inputs[A_SCALE]) && is_one(g, node->inputs[A_ZERO]) &&
           is_one(g, node->inputs[Y_SCALE]) && is_one(g, node->inputs[Y_ZERO]) &&
           shape_equal(scale, zero) &&
           (!list || (scale->rank == 1 && scale->dim[0] == b->dim[axis]));
}

static enum status turn(struct graph *g, const struct node *node, struct error *err)
{
    bool conv = node->op == &op_q_linear_conv;
    const struct shape *b = &g->values[node->inputs[B]].shape;
    int64_t axis = conv ? 0 : b->rank - 1;
    bool biased = conv && node->op_inputs > BIAS && node->inputs[BIAS] != NONE;
    if (node->post_count || (!conv && b->rank != 2) || !is_usual(g, node, axis))
        return STATUS_OK;
    int bias = biased ? float_bias(g, node) : NONE;
    if (biased && bias == NONE)
        return STATUS_OK;
    g->phase = node->phase;
    int inputs[] = {dequantise(g, node, A, 0), dequantise(g, node, B, axis), bias};
    int product = graph_node(g, conv ? op_conv.name : op_mat_mul.name, node->name, biased ? 3 : 2,
                             inputs, node->attr_count, node->attrs);
    int y = graph_node(g, op_quantize_linear.name, NULL,
                       INPUTS(product, node->inputs[Y_SCALE], node->inputs[Y_ZERO]), NO_ATTRS);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, node->outputs[0], y);
    return STATUS_OK;
}

enum status pass_turn_q_linear(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct node node = g->nodes[n];
        if (!node.dead && (node.op == &op_q_linear_conv || node.op == &op_q_linear_mat_mul))
            TRY(turn(g, &node, err));
    }
    return STATUS_OK;
}
