/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"

#include "engine/graph/op_list.h"

int gradient_in(const struct gradient_call *c, int input)
{
    const struct node *node = gradient_node(c);
    return input < node->op_inputs ? node->inputs[input] : NONE;
}

int gradient_out(const struct gradient_call *c, int output)
{
    const struct node *node = gradient_node(c);
    return output < node->output_count ? node->outputs[output] : NONE;
}

const struct node *gradient_node(const struct gradient_call *c)
{
    return &c->g->nodes[c->node];
}

struct shape gradient_shape(const struct graph *g, int value)
{
    return value == NONE ? shape_scalar() : g->values[value].shape;
}

int make_unary(struct graph *g, const struct op *op, int x)
{
    return graph_node(g, op->name, NULL, INPUTS(x), NO_ATTRS);
}

int make_binary(struct graph *g, const struct op *op, int x, int y)
{
    return graph_node(g, op->name, NULL, INPUTS(x, y), NO_ATTRS);
}

int make_add(struct graph *g, int x, int y)
{
    return make_binary(g, &op_add, x, y);
}

int make_sub(struct graph *g, int x, int y)
{
    return make_binary(g, &op_sub, x, y);
}

int make_mul(struct graph *g, int x, int y)
{
    return make_binary(g, &op_mul, x, y);
}

int make_div(struct graph *g, int x, int y)
{
    return make_binary(g, &op_div, x, y);
}

int make_neg(struct graph *g, int x)
{
    return make_unary(g, &op_neg, x);
}

int make_number(struct graph *g, enum dtype dtype, double number)
{
    float narrow = (float)number;
    char bytes[8] = {0};
    if (dtype == DTYPE_F64)
        return graph_const(g, NULL, dtype, shape_scalar(), &number);
    floats_store(dtype, &narrow, bytes, 1);
    return graph_const(g, NULL, dtype, shape_scalar(), bytes);
}

static int make_number_like(struct graph *g, int x, double number)
{
    return make_number(g, x == NONE ? DTYPE_F32 : g->values[x].dtype, number);
}

int make_scaled(struct graph *g, int x, double factor)
{
    return factor == 1 ? x : make_mul(g, x, make_number_like(g, x, factor));
}

int make_plus(struct graph *g, int x, double term)
{
    return make_add(g, x, make_number_like(g, x, term));
}

int make_mat_mul(struct graph *g, int x, int y)
{
    return make_binary(g, &op_mat_mul, x, y);
}

int make_permuted(struct graph *g, int x, int rank, const int64_t *perm)
{
    return graph_node(g, op_transpose.name, NULL, INPUTS(x), ATTRS(attr_ints("perm", rank, perm)));
}

int make_transposed(struct graph *g, int x)
{
    int64_t perm[RANK_MAX];
    int rank = gradient_shape(g, x).rank;
    for (int k = 0; k < rank; k++)
        perm[k] = k < rank - 2 ? k : 2 * rank - 3 - k;
    return make_permuted(g, x, rank, perm);
}

int make_reshaped(struct graph *g, int x, const struct shape *shape)
{
    if (x == NONE || shape_equal(&g->values[x].shape, shape))
        return x;
    int64_t dims[RANK_MAX];
    for (int k = 0; k < shape->rank; k++)
        dims[k] = shape->dim[k];
    return graph_node(g, op_reshape.name, NULL, INPUTS(x, graph_const_i64(g, shape->rank, dims)),
                      ATTRS(attr_int("allowzero", 1)));
}

int make_reshaped_as(struct graph *g, int x, int like)
{
    struct shape shape = gradient_shape(g, like);
    return make_reshaped(g, x, &shape);
}

int make_sum(struct graph *g, int x, int count, const int64_t *axes, bool keep)
{
    if (count == 0)
        return x;
    return graph_node(g, op_reduce_sum.name, NULL, INPUTS(x, graph_const_i64(g, count, axes)),
                      ATTRS(attr_int("keepdims", keep)));
}

int make_sum_to(struct graph *g, int x, int like)
{
    struct shape from = gradient_shape(g, x), to = gradient_shape(g, like);
    int64_t axes[RANK_MAX];
    int count = 0, more = from.rank - to.rank;
    for (int k = 0; k < from.rank; k++)
        if (k < more || (to.dim[k - more] == 1 && from.dim[k] != 1))
            axes[count++] = k;
    return make_reshaped(g, make_sum(g, x, count, axes, true), &to);
}

int make_expanded(struct graph *g, int x, const struct shape *shape)
{
    if (x == NONE || shape_equal(&g->values[x].shape, shape))
        return x;
    int64_t dims[RANK_MAX];
    for (int k = 0; k < shape->rank; k++)
        dims[k] = shape->dim[k];
    return graph_node(g, op_expand.name, NULL, INPUTS(x, graph_const_i64(g, shape->rank, dims)),
                      NO_ATTRS);
}

int make_slice(struct graph *g, int x, const int64_t *start, const struct shape *shape)
{
    int64_t first[RANK_MAX], end[RANK_MAX], axes[RANK_MAX];
    int count = 0;
    struct shape whole = gradient_shape(g, x);
    for (int k = 0; k < whole.rank; k++) {
        if (start[k] == 0 && shape->dim[k] == whole.dim[k])
            continue;
        first[count] = start[k];
        end[count] = start[k] + shape->dim[k];
        axes[count++] = k;
    }
    if (count == 0)
        return x;
    return graph_node(g, op_slice.name, NULL,
                      INPUTS(x, graph_const_i64(g, count, first), graph_const_i64(g, count, end),
                             graph_const_i64(g, count, axes)),
                      NO_ATTRS);
}

int make_zeros(struct graph *g, enum dtype dtype, const struct shape *shape)
{
    static const int64_t nothing = 0; /* all bits zero: 0 in every type */
    return make_expanded(g, graph_const(g, NULL, dtype, shape_scalar(), &nothing), shape);
}
