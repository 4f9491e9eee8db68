/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMul or Gemm of two f8 tensors, each made wide by Cast or DequantizeLinear, becomes MatMulF8,
 * which reads the codes themselves. One scale for a whole tensor goes before the product; Gemm's C
 * becomes an Add, which the epilogue takes in again. */

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"

struct factor {
    int value; /* f8 */
    double scale;
};

/* One fixed number of a float type. */
static bool number_of(const struct graph *g, int v, double *number)
{
    const struct value *value = &g->values[v];
    float x;
    char element[sizeof(double)];
    if (!value_is_fixed(value) || shape_count(&value->shape) != 1 ||
        !dtype_is_float(value->dtype) || value->dtype == DTYPE_F64)
        return false;
    value_materialise(value, element);
    floats_load(value->dtype, element, &x, 1);
    *number = (double)x;
    return true;
}

static bool factor_of(const struct graph *g, int v, struct factor *f)
{
    const struct node *cast = rewrite_producer(g, v, &op_cast);
    const struct node *scaled = rewrite_producer(g, v, &op_dequantize_linear);
    const struct node *node = cast ? cast : scaled;
    double zero = 0;
    if (!node || g->values[node->inputs[0]].dtype != DTYPE_F8E4M3)
        return false;
    *f = (struct factor){.value = node->inputs[0], .scale = 1};
    if (cast)
        return true;
    bool centred = node->op_inputs < 3 || node->inputs[2] == NONE ||
                   (number_of(g, node->inputs[2], &zero) && zero == 0);
    return centred && number_of(g, node->inputs[1], &f->scale);
}

static bool bears(const struct graph *g, const struct node *node)
{
    bool gemm = node->op == &op_gemm;
    if (node->dead || node->post_count || (!gemm && node->op != &op_mat_mul))
        return false;
    enum dtype to = g->values[node->outputs[0]].dtype;
    if (to != DTYPE_F32 && to != DTYPE_F16 && to != DTYPE_BF16)
        return false;
    bool c = gemm && node->op_inputs > 2 && node->inputs[2] != NONE;
    return !gemm || (!node_int(node, "transA", 0) && (!c || node_float(node, "beta", 1) == 1));
}

static int product_of(struct graph *g, const struct node *node, const struct factor *a,
                      const struct factor *b)
{
    bool gemm = node->op == &op_gemm;
    double alpha = gemm ? node_float(node, "alpha", 1) : 1;
    int64_t to = dtype_to_onnx(g->values[node->outputs[0]].dtype);
    struct attr turned = attr_int("transB", gemm ? node_int(node, "transB", 0) : 0);
    g->phase = node->phase;
    int y = graph_node(
        g, op_mat_mul_f8.name, node->name, INPUTS(a->value, b->value),
        ATTRS(attr_float("alpha", alpha * a->scale * b->scale), attr_int("to", to), turned));
    bool c = gemm && node->op_inputs > 2 && node->inputs[2] != NONE;
    return c ? graph_node(g, op_add.name, NULL, INPUTS(y, node->inputs[2]), NO_ATTRS) : y;
}

enum status pass_absorb_f8(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct node node = g->nodes[n];
        struct factor a, b;
        if (!bears(g, &node) || !factor_of(g, node.inputs[0], &a) ||
            !factor_of(g, node.inputs[1], &b))
            continue;
        int fresh = product_of(g, &node, &a, &b);
        if (g->failed)
            return graph_check(g, err);
        rewrite_replace(g, node.outputs[0], fresh);
    }
    return STATUS_OK;
}
