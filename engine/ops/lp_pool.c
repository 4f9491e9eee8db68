/* SPDX-License-Identifier: Apache-2.0
 * LpPool: (sum |x|^p)^(1/p) over a window. */
#include <math.h>

#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"auto_pad", "ceil_mode", "dilations", "kernel_shape",
                                    "p",        "pads",      "strides",   NULL};

static double value(const struct pooling *pooling, const double *x, int64_t position)
{
    double p = (double)node_int(pooling->node, "p", 2), sum = 0;
    for (int64_t t = 0; t < pooling->taps; t++) {
        int64_t at = pooling->offsets[t * pooling->positions + position];
        if (at >= 0)
            sum += pow(fabs(x[at]), p);
    }
    return pow(sum, 1 / p);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return pooling_reference(call, value, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    pooling_cost(c, 2, cost);
    cost->transcendentals = (double)shape_count(&c->out[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "3x3", .inputs = "f32[2,5,9,8]", .attrs = "kernel_shape=[3,3]"},
    {.name = "p_1", .inputs = "f32[1,4,8,8]", .attrs = "kernel_shape=[2,2] strides=[2,2] p=1"},
    {.name = "p_3_pads",
     .inputs = "f32[1,4,8,7]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] p=3"},
    {.name = "same_upper",
     .inputs = "f32[1,3,11,8]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] auto_pad=\"SAME_UPPER\""},
    {.name = "ceil_and_dilation",
     .inputs = "f32[1,3,12,12]",
     .attrs = "kernel_shape=[3,2] strides=[2,2] dilations=[2,1] ceil_mode=1"},
    {.name = "p_5", .inputs = "f32[1,7,6,6]", .attrs = "kernel_shape=[2,2] p=5"},
    {.name = "many_channels",
     .inputs = "f32[2,83,7,6]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,1]"},
    {.name = "zeros", .inputs = "f32[1,3,4,4]=0", .attrs = "kernel_shape=[2,2] p=3"},
    {.name = "not_a_number",
     .inputs = "f32[1,1,2,4]=nan,1,2,inf,3,4,-5,6",
     .attrs = "kernel_shape=[2,2] strides=[1,1]"},
    {.name = "1d", .inputs = "f32[2,4,21]", .attrs = "kernel_shape=[5] strides=[3]"},
    {.name = "3d", .inputs = "f32[1,2,5,6,4]", .attrs = "kernel_shape=[2,3,2]"},
};

REGISTER(op, lp_pool) = {
    .name = "LpPool",
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .window = true,
    .infer = pooling_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
