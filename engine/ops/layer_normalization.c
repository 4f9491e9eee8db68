/* SPDX-License-Identifier: Apache-2.0
 * LayerNormalization over the axes from `axis` on; outputs 1 and 2: mean and 1 / deviation. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/compute/moments.h"
#include "engine/ops/family/norm_gradient.h"

static const char *const attrs[] = {"axis", "epsilon", "stash_type", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    int axis = shape_axis(x, node_int(c->node, "axis", -1));
    if (axis < 0)
        return FAIL(err, STATUS_FAILED, "LayerNormalization: axis %lld of a tensor of rank %d",
                    (long long)node_int(c->node, "axis", -1), x->rank);
    for (int k = 1; k < 3 && k < c->in_count; k++) {
        struct shape both;
        char text[96], text_x[96];
        if (c->in[k] && (!shape_broadcast(x, &c->in[k]->shape, &both) || !shape_equal(&both, x)))
            return FAIL(err, STATUS_FAILED,
                        "LayerNormalization: input %d of shape %s does not broadcast to %s", k,
                        shape_text(&c->in[k]->shape, text), shape_text(x, text_x));
    }
    struct shape stash = *x;
    for (int k = axis; k < stash.rank; k++)
        stash.dim[k] = 1;
    enum dtype type = node_int(c->node, "stash_type", 1) == 16 ? DTYPE_BF16 : DTYPE_F32;
    infer_set(c, 0, c->in[0]->dtype, x);
    infer_set(c, 1, type, &stash);
    infer_set(c, 2, type, &stash);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    int axis = shape_axis(x, node_int(c->node, "axis", -1));
    cost->elementwise = 8 * (double)shape_count(x);
    cost->transcendentals = (double)shape_span(x, 0, axis);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0], *scale = call->in[1], *y = call->out[0];
    const struct ref_tensor *bias = call->in_count > 2 ? call->in[2] : NULL;
    int axis = shape_axis(&x->shape, node_int(call->node, "axis", -1));
    int64_t rows = shape_span(&x->shape, 0, axis);
    int64_t count = shape_span(&x->shape, axis, x->shape.rank);
    double epsilon = node_float(call->node, "epsilon", 1e-5);
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = moments_of(x->f + row * count, count);
        double inverse = 1 / sqrt(m.variance + epsilon);
        for (int64_t k = row * count; k < (row + 1) * count; k++) {
            y->f[k] = (x->f[k] - m.mean) * inverse *
                      scale->f[ref_broadcast_index(&x->shape, k, &scale->shape)];
            if (bias)
                y->f[k] += bias->f[ref_broadcast_index(&x->shape, k, &bias->shape)];
        }
        if (call->out_count > 1 && call->out[1])
            call->out[1]->f[row] = m.mean;
        if (call->out_count > 2 && call->out[2])
            call->out[2]->f[row] = inverse;
    }
    return STATUS_OK;
}

/* What a loss that depends on the mean or on 1 / deviation adds: d mean = 1 / n, d inverse =
 * -inverse^3 (x - mean) / n. NONE: none does. */
static int by_moments(const struct gradient_call *c, int axis)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), mean = gradient_out(c, 1), inverse = gradient_out(c, 2), sum = NONE;
    struct shape shape = gradient_shape(g, x);
    double share = 1 / (double)shape_span(&shape, axis, shape.rank);
    int by_mean = mean == NONE ? NONE : c->dy[1], by_inverse = inverse == NONE ? NONE : c->dy[2];
    if (by_inverse != NONE) {
        int64_t axes[RANK_MAX], count = 0;
        for (int k = axis; k < shape.rank; k++)
            axes[count++] = k;
        int centre = graph_node(g, op_reduce_mean.name, NULL,
                                INPUTS(x, graph_const_i64(g, (int)count, axes)), NO_ATTRS);
        int cube = make_mul(g, inverse, make_mul(g, inverse, inverse));
        sum = make_mul(g, make_sub(g, x, centre),
                       make_scaled(g, make_mul(g, by_inverse, cube), -share));
    }
    if (by_mean == NONE)
        return sum;
    by_mean = make_expanded(g, make_scaled(g, by_mean, share), &shape);
    return sum == NONE ? by_mean : make_add(g, sum, by_mean);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    struct shape x = gradient_shape(g, gradient_in(c, 0));
    struct row_norm norm = {.x = gradient_in(c, 0),
                            .scale = gradient_in(c, 1),
                            .bias = gradient_in(c, 2),
                            .axis = shape_axis(&x, node_int(gradient_node(c), "axis", -1)),
                            .epsilon = node_float(gradient_node(c), "epsilon", 1e-5),
                            .centred = true};
    int result[NORM_INPUTS] = {NONE, NONE, NONE}, more = NONE;
    (void)err;
    if (c->dy[0] != NONE)
        norm_gradient(g, &norm, c->dy[0], result);
    if (c->wanted[0])
        more = by_moments(c, norm.axis);
    if (more != NONE)
        result[NORM_X] = result[NORM_X] == NONE ? more : make_add(g, result[NORM_X], more);
    c->dx[0] = result[NORM_X];
    c->dx[1] = result[NORM_SCALE];
    if (norm.bias != NONE)
        c->dx[2] = result[NORM_BIAS];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last_axis", .inputs = "f32[2,9,67] f32[67]! f32[67]!"},
    {.name = "hidden_size", .inputs = "f32[5,768] f32[768]! f32[768]!", .attrs = "epsilon=1.0e-12"},
    {.name = "no_bias", .inputs = "f32[7,33] f32[33]!"},
    {.name = "offset_far_from_zero",
     .inputs = "f32[4,128]{99:101} f32[128]! f32[128]!",
     .tolerance = 1e-3},
    {.name = "axis_1", .inputs = "f32[3,4,5,2] f32[4,5,2]! f32[4,5,2]!", .attrs = "axis=1"},
    {.name = "axis_0", .inputs = "f32[6,5] f32[6,5]! f32[6,5]!", .attrs = "axis=0"},
    {.name = "three_outputs", .inputs = "f32[4,3,16] f32[16]! f32[16]!", .outputs = 3},
    {.name = "rows_of_nothing", .inputs = "f32[2,3,0] f32[0] f32[0]", .outputs = 3},
    {.name = "scale_by_row", .inputs = "f32[6,20] f32[6,1] f32[20]"},
    {.name = "scale_by_row_square", .inputs = "f32[6,6] f32[6,1] f32[1]"},
    {.name = "parameters_at_run_time", .inputs = "f32[4,20] f32[20] f32[20]"},
    /* Lines that devices keep in registers of a block, or split over blocks. */
    {.name = "rows_of_a_block", .inputs = "f32[2,1500] f32[1500]! f32[1500]!"},
    {.name = "rows_of_a_large_block", .inputs = "f32[2,2600] f32[2600]! f32[2600]!"},
    {.name = "rows_of_the_largest_block", .inputs = "f32[1,9000] f32[9000]! f32[9000]!"},
    {.name = "longest_row",
     .inputs = "f32[1,66000]{99:101} f32[66000]! f32[66000]!",
     .outputs = 3,
     .tolerance = 1e-3},
    {.name = "longest_odd_rows", .inputs = "f32[2,33001] f32[33001]! f32[33001]!"},
};

REGISTER(op, layer_normalization) = {
    .name = "LayerNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 2,
    .inputs_max = 3,
    .outputs_max = 3,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
