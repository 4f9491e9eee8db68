/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization as exporters below opset 17 write it, and RMSNormalization as those below 23:
 *   d = x - mean(x);  y = d / sqrt(mean(d^2) + eps) * scale + bias, over the last axis;
 *   y = x / sqrt(mean(x^2) + eps) * scale, with the reciprocal of the root as a node of its own. */

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

/* ReduceMean over the last axis with kept dimensions; gives its input. */
static bool last_mean(const struct graph *g, int value, int *x)
{
    int64_t axes[RANK_MAX];
    const struct node *mean = rewrite_producer(g, value, &op_reduce_mean);
    if (!mean || !node_int(mean, "keepdims", 1))
        return false;
    int count = node_ints(mean, "axes", axes, RANK_MAX);
    if (count == 0 && mean->op_inputs > 1 && mean->inputs[1] != NONE) {
        const struct value *v = &g->values[mean->inputs[1]];
        if (!value_is_fixed(v) || v->dtype != DTYPE_I64 || shape_count(&v->shape) != 1)
            return false;
        value_materialise(v, axes);
        count = 1;
    }
    *x = mean->inputs[0];
    int rank = g->values[*x].shape.rank;
    return count == 1 && (axes[0] == -1 || axes[0] == rank - 1);
}

/* d = x - mean(x) */
static bool centred(const struct graph *g, int d, int *x)
{
    int mean_of;
    const struct node *sub = rewrite_producer(g, d, &op_sub);
    *x = sub ? sub->inputs[0] : NONE;
    return sub && last_mean(g, sub->inputs[1], &mean_of) && mean_of == *x;
}

static bool is_square(const struct graph *g, int value, int *d)
{
    double power;
    const struct node *pow = rewrite_producer(g, value, &op_pow);
    const struct node *mul = rewrite_producer(g, value, &op_mul);
    if (pow) {
        *d = pow->inputs[0];
        return rewrite_scalar(g, pow->inputs[1], &power) && power == 2;
    }
    *d = mul ? mul->inputs[0] : NONE;
    return mul && mul->inputs[0] == mul->inputs[1];
}

/* d2 may be a second Sub of the same operands as d (exporters duplicate it). */
static bool same_difference(const struct graph *g, int a, int b)
{
    const struct node *x = rewrite_producer(g, a, &op_sub), *y = rewrite_producer(g, b, &op_sub);
    return a == b || (x && y && x->inputs[0] == y->inputs[0] && x->inputs[1] == y->inputs[1]);
}

/* Sqrt(Add(mean(square(d)), eps)) */
static bool is_root(const struct graph *g, int value, int *d, double *epsilon)
{
    int variance, squared;
    const struct node *root = rewrite_producer(g, value, &op_sqrt);
    const struct node *add = root ? rewrite_producer(g, root->inputs[0], &op_add) : NULL;
    return add && rewrite_with_scalar(g, add, epsilon, &variance) &&
           last_mean(g, variance, &squared) && is_square(g, squared, d);
}

/* Div(d, root), in which no scalar of shape [1, 1, 1] raises the rank */
static bool match(const struct graph *g, const struct node *div, int *x, double *epsilon)
{
    int d;
    return div->op == &op_div && is_root(g, div->inputs[1], &d, epsilon) && centred(g, d, x) &&
           same_difference(g, d, div->inputs[0]) &&
           shape_equal(&g->values[*x].shape, &g->values[div->outputs[0]].shape);
}

/* What a value is 1 divided by; NONE. */
static int inverse_of(const struct graph *g, int value)
{
    double one;
    const struct node *reciprocal = rewrite_producer(g, value, &op_reciprocal);
    const struct node *div = rewrite_producer(g, value, &op_div);
    if (reciprocal)
        return reciprocal->inputs[0];
    return div && rewrite_scalar(g, div->inputs[0], &one) && one == 1 ? div->inputs[1] : NONE;
}

/* Div(x, root) or Mul(x, 1 / root) */
static bool match_rms(const struct graph *g, const struct node *node, int *x, double *epsilon)
{
    int d, forms = node->op == &op_div ? 1 : 2;
    for (int k = 0; k < forms && g->values[node->outputs[0]].dtype == DTYPE_F32; k++) {
        int root = node->inputs[1 - k];
        *x = node->inputs[k];
        if (node->op == &op_mul)
            root = inverse_of(g, root);
        if (root != NONE && is_root(g, root, &d, epsilon) && d == *x &&
            shape_equal(&g->values[*x].shape, &g->values[node->outputs[0]].shape))
            return true;
    }
    return false;
}

/* The operand of the one reader `op` of value if it is a fixed vector over the last axis. */
static int vector_operand(const struct graph *g, int value, const struct op *op, int *result)
{
    int user = rewrite_only_user(g, value);
    if (user == NONE || g->nodes[user].op != op)
        return NONE;
    const struct node *node = &g->nodes[user];
    int operand = node->inputs[node->inputs[0] == value ? 1 : 0];
    const struct shape *whole = &g->values[value].shape, *shape = &g->values[operand].shape;
    if (!value_is_fixed(&g->values[operand]) || shape->rank != 1 ||
        shape->dim[0] != whole->dim[whole->rank - 1])
        return NONE;
    *result = node->outputs[0];
    return operand;
}

static enum status replace(struct graph *g, int x, int divided, double epsilon, bool centre,
                           struct error *err)
{
    int scaled, shifted, fresh;
    int scale = vector_operand(g, divided, &op_mul, &scaled);
    if (scale == NONE)
        return STATUS_OK;
    int bias = centre ? vector_operand(g, scaled, &op_add, &shifted) : NONE;
    int old = bias == NONE ? scaled : shifted;
    const struct op *op = centre ? &op_layer_normalization : &op_rms_normalization;
    g->phase = g->nodes[g->values[divided].producer].phase;
    fresh = graph_node(g, op->name, NULL, bias == NONE ? 2 : 3, (const int[]){x, scale, bias},
                       ATTRS(attr_int("axis", -1), attr_float("epsilon", epsilon)));
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, old, fresh);
    return STATUS_OK;
}

enum status pass_find_layer_norm(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        int x;
        double epsilon;
        const struct node *node = &g->nodes[n];
        if (node->dead || node->post_count || (node->op != &op_div && node->op != &op_mul))
            continue;
        bool centre = match(g, node, &x, &epsilon);
        if (centre || match_rms(g, node, &x, &epsilon))
            TRY(replace(g, x, node->outputs[0], epsilon, centre, err));
    }
    return STATUS_OK;
}
