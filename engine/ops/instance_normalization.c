/* SPDX-License-Identifier: Apache-2.0
 * InstanceNormalization: each channel of each image to mean 0 and deviation 1, then scale, bias. */
#include <math.h>

#include "engine/ops/compute/moments.h"
#include "engine/ops/family/norm_gradient.h"

static const char *const attrs[] = {"epsilon", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    if (x->rank < 3)
        return FAIL(err, STATUS_FAILED, "InstanceNormalization: input of rank %d, not 3 or more",
                    x->rank);
    for (int k = 1; k < 3; k++)
        if (shape_count(&c->in[k]->shape) != x->dim[1])
            return FAIL(err, STATUS_FAILED,
                        "InstanceNormalization: input %d has %lld elements for %lld channels", k,
                        (long long)shape_count(&c->in[k]->shape), (long long)x->dim[1]);
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 8 * (double)shape_count(&c->in[0]->shape);
    cost->transcendentals = (double)shape_span(&c->in[0]->shape, 0, 2);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    int64_t plane = shape_span(&x->shape, 2, x->shape.rank), channels = x->shape.dim[1];
    double epsilon = node_float(call->node, "epsilon", 1e-5);
    for (int64_t p = 0; p < x->shape.dim[0] * channels; p++) {
        struct moments m = moments_of(x->f + p * plane, plane);
        double factor = call->in[1]->f[p % channels] / sqrt(m.variance + epsilon);
        for (int64_t k = p * plane; k < (p + 1) * plane; k++)
            call->out[0]->f[k] = (x->f[k] - m.mean) * factor + call->in[2]->f[p % channels];
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    norm_gradient_of_groups(c, gradient_shape(c->g, gradient_in(c, 0)).dim[1]);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,19,6,7] f32[19]! f32[19]!"},
    {.name = "epsilon", .inputs = "f32[1,4,5,5] f32[4]! f32[4]!", .attrs = "epsilon=0.01"},
    {.name = "rank_3", .inputs = "f32[2,5,31] f32[5]! f32[5]!"},
    {.name = "rank_5", .inputs = "f32[1,3,2,3,4] f32[3] f32[3]"},
    {.name = "of_nothing", .inputs = "f32[2,3,0,4] f32[3] f32[3]"},
    {.name = "vectors", .inputs = "f32[2,80,8,4] f32[80]! f32[80]!"},
    {.name = "whole_planes",
     .inputs = "f32[1,2,160,164]{99:101} f32[2]! f32[2]!",
     .tolerance = 1e-3},
    {.name = "split_planes",
     .inputs = "f32[1,24,61,64]{99:101} f32[24]! f32[24]!",
     .tolerance = 1e-3},
};

REGISTER(op, instance_normalization) = {
    .name = "InstanceNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
