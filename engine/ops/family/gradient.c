/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"

#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_unary.h"
#include "engine/ops/lib/reduce.h"

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

struct op_args gradient_args(const struct gradient_call *c, struct gradient_inputs *inputs)
{
    const struct node *node = gradient_node(c);
    int count = node->op_inputs < GRADIENT_INPUTS ? node->op_inputs : GRADIENT_INPUTS;
    for (int k = 0; k < count; k++)
        inputs->in[k] = node->inputs[k] == NONE ? NULL : &c->g->values[node->inputs[k]];
    inputs->infer = (struct infer){.node = node, .in = inputs->in, .in_count = count};
    return args_of_infer(&inputs->infer);
}

/* ---- rules that several operators share ---- */

enum status gradient_of_alias(const struct gradient_call *c, struct error *err)
{
    (void)err;
    c->dx[0] = make_reshaped_as(c->g, c->dy[0], gradient_in(c, 0));
    return STATUS_OK;
}

static bool keeps_signs(enum function function, const double p[2])
{
    return function_value(function, p[0], p[1], -1, 0) < 0 &&
           function_value(function, p[0], p[1], 1, 0) > 0;
}

enum status gradient_of_function(const struct gradient_call *c, struct error *err)
{
    const struct op *op = gradient_node(c)->op;
    struct slope slope = function_slope(op->function);
    double p[2];
    node_parameters(gradient_node(c), p);
    if (slope.at == SLOPE_ZERO)
        return STATUS_OK;
    if (slope.at == SLOPE_UNKNOWN)
        return UNSUPPORTED(err, "%s has no gradient: engine/graph/function.c names no slope of %s",
                           op->name, function_info(op->function)->name);
    if (slope.at == SLOPE_AT_RISING_RESULT && !keeps_signs(op->function, p))
        return UNSUPPORTED(err, "%s has no gradient with the parameters %g and %g", op->name, p[0],
                           p[1]);
    int at = slope.at == SLOPE_AT_INPUT ? gradient_in(c, 0) : gradient_out(c, 0);
    c->dx[0] = make_function(c->g, slope.function, c->dy[0], at, p[0], p[1]);
    return STATUS_OK;
}

enum status gradient_kept(const struct gradient_call *c, int *dy, struct error *err)
{
    struct gradient_inputs inputs;
    int64_t axes[RANK_MAX] = {0};
    int count = 0, list = gradient_in(c, 1);
    bool reduced[RANK_MAX], any = false;
    struct shape kept = gradient_shape(c->g, gradient_in(c, 0)), size = gradient_shape(c->g, list);
    gradient_args(c, &inputs);
    if (list != NONE && shape_count(&size) > 0)
        TRY(infer_ints(&inputs.infer, 1, axes, RANK_MAX, &count, err));
    TRY(reduce_axes(inputs.infer.node, &kept, count, list == NONE ? NULL : axes, reduced, err));
    for (int k = 0; k < kept.rank; k++) {
        kept.dim[k] = reduced[k] ? 1 : kept.dim[k];
        any = any || reduced[k];
    }
    *dy = any ? make_reshaped(c->g, c->dy[0], &kept) : NONE;
    if (!any)
        c->dx[0] = c->dy[0];
    return STATUS_OK;
}

enum status gradient_of_extreme(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), y = gradient_out(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    y = make_reshaped_as(g, y, dy);
    int reached = make_binary(g, &op_equal, x, y);
    int share = make_cast(g, reached, g->values[x].dtype);
    int together = make_sum_to(g, share, y);
    c->dx[0] = make_mul(g, share, make_div(g, dy, together));
    return STATUS_OK;
}

enum status gradient_of_choice(const struct gradient_call *c, bool greater)
{
    struct graph *g = c->g;
    const struct op *op = gradient_node(c)->op;
    int dy = c->dy[0];
    for (int k = gradient_node(c)->op_inputs - 1; k > 0; k--) {
        int x = gradient_in(c, k), rest = gradient_in(c, 0);
        if (k > 1)
            rest = graph_node(g, op->name, NULL, k, gradient_node(c)->inputs, NO_ATTRS);
        int ahead = greater ? make_sub(g, x, rest) : make_sub(g, rest, x);
        int part = make_function(g, FN_RELU_SLOPE, dy, ahead, 0, 0);
        if (c->wanted[k])
            c->dx[k] = make_sum_to(g, part, x);
        dy = make_sub(g, dy, part);
    }
    if (c->wanted[0])
        c->dx[0] = make_sum_to(g, dy, gradient_in(c, 0));
    return STATUS_OK;
}

/* ---- nodes of one operator ---- */

int make_unary(struct graph *g, const struct op *op, int x)
{
    return graph_node(g, op->name, NULL, INPUTS(x), NO_ATTRS);
}

int make_binary(struct graph *g, const struct op *op, int x, int y)
{
    return graph_node(g, op->name, NULL, INPUTS(x, y), NO_ATTRS);
}

int make_function(struct graph *g, enum function function, int x, int y, double p, double q)
{
    const struct function_info *info = function_info(function);
    struct attr attrs[3] = {attr_string("function", info->name), attr_float("p", p),
                            attr_float("q", q)};
    int inputs[2] = {x, y};
    return graph_node(g, op_function.name, NULL, info->operands, inputs, ARRAY_COUNT(attrs), attrs);
}

int make_cast(struct graph *g, int x, enum dtype dtype)
{
    if (x == NONE || g->values[x].dtype == dtype)
        return x;
    return graph_node(g, op_cast.name, NULL, INPUTS(x),
                      ATTRS(attr_int("to", dtype_to_onnx(dtype))));
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

int make_share(struct graph *g, int x, int64_t count)
{
    return count == 1 ? x : make_div(g, x, make_number_like(g, x, (double)count));
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

int make_per_channel(struct graph *g, int vector, int x)
{
    struct shape shape = gradient_shape(g, x), channels = {.rank = shape.rank > 1 ? shape.rank : 1};
    for (int k = 0; k < channels.rank; k++)
        channels.dim[k] = 1;
    channels.dim[shape.rank > 1] = gradient_shape(g, vector).dim[0];
    return make_reshaped(g, vector, &channels);
}

int make_channel_mean(struct graph *g, int x, int like)
{
    struct shape shape = gradient_shape(g, x);
    int64_t axes[RANK_MAX];
    int count = 0;
    for (int k = 0; k < shape.rank; k++)
        if (k != 1)
            axes[count++] = k;
    int mean = graph_node(g, op_reduce_mean.name, NULL, INPUTS(x, graph_const_i64(g, count, axes)),
                          NO_ATTRS);
    return make_reshaped_as(g, mean, like);
}

/* What is left of a shape that is summed over axes, and of how many elements each sum is. */
static struct shape summed(const struct shape *from, int count, const int64_t *axes, bool keep,
                           int64_t *each)
{
    struct shape to = {0};
    *each = 1;
    for (int k = 0; k < from->rank; k++) {
        bool gone = false;
        for (int i = 0; i < count; i++)
            gone = gone || axes[i] == k;
        *each *= gone ? from->dim[k] : 1;
        if (!gone || keep)
            to.dim[to.rank++] = gone ? 1 : from->dim[k];
    }
    return to;
}

int make_sum(struct graph *g, int x, int count, const int64_t *axes, bool keep)
{
    int64_t each;
    struct shape from = gradient_shape(g, x), to = summed(&from, count, axes, keep, &each);
    if (count == 0)
        return x;
    if (each == 1) /* as with batches of one */
        return make_reshaped(g, x, &to);
    return graph_node(g, op_reduce_sum.name, NULL, INPUTS(x, graph_const_i64(g, count, axes)),
                      ATTRS(attr_int("keepdims", keep)));
}

int make_sum_of_lines(struct graph *g, int x, int first_axis, int end_axis)
{
    int64_t axes[RANK_MAX] = {0};
    for (int k = first_axis; k < end_axis; k++)
        axes[k - first_axis] = k;
    return make_sum(g, x, end_axis - first_axis, axes, true);
}

int make_sum_to(struct graph *g, int x, int like)
{
    struct shape from = gradient_shape(g, x), to = gradient_shape(g, like);
    int64_t axes[RANK_MAX] = {0};
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

int make_padded(struct graph *g, int x, const int64_t *before, const int64_t *after)
{
    int64_t pads[2 * RANK_MAX] = {0};
    int rank = gradient_shape(g, x).rank;
    bool any = false;
    for (int k = 0; k < rank; k++) {
        pads[k] = before[k];
        pads[rank + k] = after[k];
        any = any || before[k] || after[k];
    }
    if (!any)
        return x;
    return graph_node(g, op_pad.name, NULL, INPUTS(x, graph_const_i64(g, 2 * rank, pads)),
                      NO_ATTRS);
}

int make_zeros(struct graph *g, enum dtype dtype, const struct shape *shape)
{
    static const int64_t nothing = 0; /* all bits zero: 0 in every type */
    return make_expanded(g, graph_const(g, NULL, dtype, shape_scalar(), &nothing), shape);
}
