/* SPDX-License-Identifier: Apache-2.0
 * GroupNormalization: channels in num_groups groups to mean 0 and deviation 1. Scale and bias come
 * per channel (opset 21) or per group (opset 18): their length tells. Wu and He 2018. */
#include <math.h>

#include "engine/ops/compute/moments.h"
#include "engine/ops/family/norm_gradient.h"

static const char *const attrs[] = {"epsilon", "num_groups", "stash_type", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    int64_t groups = node_int(c->node, "num_groups", 0);
    char text[96];
    if (x->rank < 2 || groups < 1 || x->dim[1] % groups != 0)
        return FAIL(err, STATUS_FAILED, "GroupNormalization: input %s in %lld groups",
                    shape_text(x, text), (long long)groups);
    for (int k = 1; k < 3; k++) {
        int64_t count = shape_count(&c->in[k]->shape);
        if (count != x->dim[1] && count != groups)
            return FAIL(err, STATUS_FAILED,
                        "GroupNormalization: input %d has %lld elements, neither one per channel "
                        "nor one per group",
                        k, (long long)count);
    }
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    int64_t groups = node_int(c->node, "num_groups", 1);
    cost->elementwise = 8 * (double)shape_count(&c->in[0]->shape);
    cost->transcendentals = (double)(c->in[0]->shape.dim[0] * groups);
}

static double of_channel(const struct ref_tensor *parameter, int64_t channel, int64_t channels)
{
    return parameter->f[channel / (channels / parameter->count)];
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    int64_t groups = node_int(call->node, "num_groups", 1), channels = x->shape.dim[1];
    int64_t plane = shape_span(&x->shape, 2, x->shape.rank), size = channels / groups * plane;
    double epsilon = node_float(call->node, "epsilon", 1e-5);
    for (int64_t g = 0; g < x->shape.dim[0] * groups; g++) {
        struct moments m = moments_of(x->f + g * size, size);
        double inverse = 1 / sqrt(m.variance + epsilon);
        for (int64_t k = g * size; k < (g + 1) * size; k++) {
            int64_t channel = k / plane % channels;
            call->out[0]->f[k] =
                (x->f[k] - m.mean) * inverse * of_channel(call->in[1], channel, channels) +
                of_channel(call->in[2], channel, channels);
        }
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    norm_gradient_of_groups(c, node_int(gradient_node(c), "num_groups", 1));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "per_channel", .inputs = "f32[2,12,5,7] f32[12]! f32[12]!", .attrs = "num_groups=3"},
    {.name = "per_group", .inputs = "f32[2,12,5,7] f32[4]! f32[4]!", .attrs = "num_groups=4"},
    {.name = "32_groups", .inputs = "f32[1,64,6,6] f32[64]! f32[64]!", .attrs = "num_groups=32"},
    {.name = "one_group",
     .inputs = "f32[2,6,9] f32[6] f32[6]",
     .attrs = "num_groups=1 epsilon=0.01"},
    {.name = "rank_2", .inputs = "f32[3,8] f32[8]! f32[8]!", .attrs = "num_groups=2"},
    {.name = "whole_vectors", .inputs = "f32[2,24,4,8] f32[24]! f32[3]!", .attrs = "num_groups=3"},
    {.name = "vectors_of_two_groups",
     .inputs = "f32[2,40,4,8] f32[4] f32[40]",
     .attrs = "num_groups=4"},
    {.name = "of_nothing", .inputs = "f32[0,4,3,3] f32[4]! f32[4]!", .attrs = "num_groups=2"},
    /* Groups that devices keep in registers of a block, or split over blocks. */
    {.name = "of_a_block", .inputs = "f32[1,16,16,16] f32[16]! f32[16]!", .attrs = "num_groups=4"},
    {.name = "of_a_large_block",
     .inputs = "f32[1,20,16,32] f32[2]! f32[20]!",
     .attrs = "num_groups=2"},
    {.name = "of_the_largest_block",
     .inputs = "f32[1,9,32,32] f32[9]! f32[9]!",
     .attrs = "num_groups=1"},
    {.name = "long",
     .inputs = "f32[1,24,100,28]{99:101} f32[24]! f32[24]!",
     .attrs = "num_groups=2",
     .tolerance = 1e-3},
    {.name = "long_odd",
     .inputs = "f32[2,3,91,127]{9:11} f32[3]! f32[3]!",
     .attrs = "num_groups=1",
     .tolerance = 1e-3},
    {.name = "long_within_vectors",
     .inputs = "f32[2,24,100,16] f32[24]! f32[4]!",
     .attrs = "num_groups=4"},
    {.name = "many_channels",
     .inputs = "f32[1,1048,5,17] f32[1048]! f32[1048]!",
     .attrs = "num_groups=1"},
};

REGISTER(op, group_normalization) = {
    .name = "GroupNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .since = 18,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
