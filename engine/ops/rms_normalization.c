/* SPDX-License-Identifier: Apache-2.0
 * RMSNormalization: x / sqrt(mean x^2 + epsilon) * scale over the axes from `axis` on. Zhang and
 * Sennrich 2019. */
#include <math.h>

#include "engine/ops/family/norm_gradient.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"axis", "epsilon", "stash_type", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *scale = &c->in[1]->shape;
    struct op_args args = args_of_infer(c);
    struct shape both;
    char text[96], text_x[96];
    int axis;
    TRY(args_axis(&args, x, -1, &axis, err));
    if (!shape_broadcast(x, scale, &both) || !shape_equal(&both, x))
        return FAIL(err, STATUS_FAILED, "RMSNormalization: scale %s does not broadcast to %s",
                    shape_text(scale, text), shape_text(x, text_x));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    cost->elementwise = 4 * (double)shape_count(x);
    cost->transcendentals = (double)shape_span(x, 0, shape_axis(x, node_int(c->node, "axis", -1)));
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0], *scale = call->in[1];
    int axis = shape_axis(&x->shape, node_int(call->node, "axis", -1));
    int64_t count = shape_span(&x->shape, axis, x->shape.rank);
    double epsilon = node_float(call->node, "epsilon", 1e-5);
    for (int64_t row = 0; row < shape_span(&x->shape, 0, axis); row++) {
        double squares = 0;
        for (int64_t k = row * count; k < (row + 1) * count; k++)
            squares += x->f[k] * x->f[k];
        double inverse = 1 / sqrt(squares / (double)count + epsilon);
        for (int64_t k = row * count; k < (row + 1) * count; k++)
            call->out[0]->f[k] =
                x->f[k] * inverse * scale->f[ref_broadcast_index(&x->shape, k, &scale->shape)];
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct shape x = gradient_shape(c->g, gradient_in(c, 0));
    struct row_norm norm = {.x = gradient_in(c, 0),
                            .scale = gradient_in(c, 1),
                            .bias = NONE,
                            .axis = shape_axis(&x, node_int(gradient_node(c), "axis", -1)),
                            .epsilon = node_float(gradient_node(c), "epsilon", 1e-5)};
    int result[NORM_INPUTS];
    (void)err;
    norm_gradient(c->g, &norm, c->dy[0], result);
    c->dx[0] = result[NORM_X];
    c->dx[1] = result[NORM_SCALE];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last_axis", .inputs = "f32[2,9,67] f32[67]!"},
    {.name = "axis_1", .inputs = "f32[3,4,5,2] f32[4,5,2]!", .attrs = "axis=1"},
    {.name = "epsilon", .inputs = "f32[5,64]{-0.01:0.01} f32[64]!", .attrs = "epsilon=0.001"},
    {.name = "scale_at_run_time", .inputs = "f32[4,33] f32[33]"},
    {.name = "longest_row", .inputs = "f32[1,66000]{-1:2} f32[66000]!"},
    {.name = "longest_odd_rows", .inputs = "f32[2,33001]{-1:2} f32[33001]!"},
};

REGISTER(op, rms_normalization) = {
    .name = "RMSNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 2,
    .attrs = attrs,
    .since = 23,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
