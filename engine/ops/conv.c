/* SPDX-License-Identifier: Apache-2.0
 * Conv: 1 to 3 spatial dimensions, groups, dilation, all paddings. Inputs x, weights, bias. */
#include "engine/graph/op.h"
#include "engine/ops/compute/ref_conv.h"
#include "engine/ops/family/conv_gradient.h"
#include "engine/ops/family/conv_shape.h"

static const char *const attrs[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                    "pads",     "strides",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct window w;
    struct shape y;
    TRY(conv_shape_from(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, &y, err));
    if (infer_has(c, 2) && shape_count(&c->in[2]->shape) != y.dim[1])
        return FAIL(err, STATUS_FAILED, "Conv: bias has %lld elements, weights give %lld channels",
                    (long long)shape_count(&c->in[2]->shape), (long long)y.dim[1]);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *weights = &c->in[1]->shape;
    double outputs = (double)shape_count(&c->out[0]->shape);
    cost->macs = outputs * (double)shape_span(weights, 1, weights->rank);
    cost->elementwise = infer_has(c, 2) ? outputs : 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *weights = call->in[1];
    bool bias = call->in_count > 2 && call->in[2];
    struct window w;
    TRY(window_from_node(call->node, &x->shape, weights->shape.dim + 2, &w, err));
    struct ref_conv conv = {.window = window_to_3d(&w),
                            .images = x->shape.dim[0],
                            .in_channels = x->shape.dim[1],
                            .out_channels = weights->shape.dim[0],
                            .x = x->f,
                            .weights = weights->f,
                            .y = call->out[0]->f};
    ref_conv_bias(&conv, bias ? call->in[2]->f : NULL);
    return ref_conv_run(&conv, call->pool, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), weights = gradient_in(c, 1), bias = gradient_in(c, 2);
    struct shape image = gradient_shape(g, x), kernel = gradient_shape(g, weights);
    struct window w;
    TRY(window_from_node(gradient_node(c), &image, kernel.dim + 2, &w, err));
    if (c->wanted[0])
        c->dx[0] = make_conv_transpose(g, c->dy[0], weights, &w);
    if (c->wanted[1])
        c->dx[1] = make_conv_weight_gradient(g, x, c->dy[0], &w);
    if (bias != NONE && c->wanted[2])
        c->dx[2] = make_bias_gradient(g, c->dy[0], bias);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "3x3_same_bias",
     .inputs = "f32[1,16,14,14] f32[32,16,3,3]! f32[32]!",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "3x3_stride_2", .inputs = "f32[2,8,13,15] f32[24,8,3,3]!", .attrs = "strides=[2,2]"},
    {.name = "1x1", .inputs = "f32[1,40,9,7] f32[17,40,1,1]! f32[17]!"},
    {.name = "1x1_stride_2", .inputs = "f32[2,16,8,8] f32[33,16,1,1]!", .attrs = "strides=[2,2]"},
    {.name = "7x7_stride_2_3_channels",
     .inputs = "f32[1,3,32,30] f32[64,3,7,7]! f32[64]!",
     .attrs = "pads=[3,3,3,3] strides=[2,2]"},
    {.name = "first_layer_of_many_tiles",
     .inputs = "f32[2,3,75,67] f32[96,3,7,7]! f32[96]!",
     .attrs = "pads=[3,2,3,4] strides=[2,2]"},
    {.name = "first_layer_11x11_stride_4",
     .inputs = "f32[2,3,75,67] f32[24,3,11,11]! f32[24]!",
     .attrs = "strides=[4,4]"},
    {.name = "two_channels_4x3_stride_1_2",
     .inputs = "f32[2,2,19,37] f32[70,2,4,3]! f32[70]!",
     .attrs = "pads=[2,1,1,0] strides=[1,2]"},
    {.name = "four_channels_3x3", .inputs = "f32[3,4,18,33] f32[33,4,3,3]!"},
    {.name = "whole_image", .inputs = "f32[3,8,5,7] f32[18,8,5,7]!"},
    {.name = "many_channels",
     .inputs = "f32[1,256,7,7] f32[128,256,3,3]! f32[128]!",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "one_input_channel",
     .inputs = "f32[1,1,28,28] f32[6,1,5,5]! f32[6]!",
     .attrs = "pads=[2,2,2,2]"},
    {.name = "one_output_channel", .inputs = "f32[1,19,6,5] f32[1,19,3,3]!"},
    {.name = "run-time_weights", .inputs = "f32[2,5,9,9] f32[7,5,3,3] f32[7]"},
    {.name = "group_2", .inputs = "f32[1,8,9,9] f32[6,4,3,3]!", .attrs = "group=2"},
    {.name = "group_32",
     .inputs = "f32[1,128,7,7] f32[128,4,3,3]! f32[128]!",
     .attrs = "group=32 pads=[1,1,1,1]"},
    {.name = "depthwise",
     .inputs = "f32[2,35,12,11] f32[35,1,3,3]! f32[35]!",
     .attrs = "group=35 pads=[1,1,1,1]"},
    {.name = "depthwise_5x5_stride_2",
     .inputs = "f32[1,16,15,15] f32[16,1,5,5]!",
     .attrs = "group=16 pads=[2,2,2,2] strides=[2,2]"},
    {.name = "depthwise_1x21",
     .inputs = "f32[1,17,5,30] f32[17,1,1,21]!",
     .attrs = "group=17 pads=[0,10,0,10]"},
    {.name = "depthwise_21x1", .inputs = "f32[1,17,30,5] f32[17,1,21,1]!", .attrs = "group=17"},
    {.name = "depthwise_multiplier_3", .inputs = "f32[1,5,8,8] f32[15,1,3,3]!", .attrs = "group=5"},
    {.name = "dilation_6",
     .inputs = "f32[1,16,19,19] f32[16,16,3,3]! f32[16]!",
     .attrs = "dilations=[6,6] pads=[6,6,6,6]"},
    {.name = "dilation_beyond_the_image", /* only the middle tap meets it */
     .inputs = "f32[2,24,10,9] f32[40,24,3,3]! f32[40]!",
     .attrs = "dilations=[12,12] pads=[12,12,12,12]"},
    {.name = "dilation_beyond_half_of_it",
     .inputs = "f32[1,500,9,10] f32[37,500,3,3]! f32[37]!",
     .attrs = "dilations=[6,6] pads=[6,6,6,6]"},
    {.name = "nothing_but_padding",
     .inputs = "f32[1,20,3,3] f32[33,20,2,2]! f32[33]!",
     .attrs = "dilations=[9,9] pads=[20,20,20,20] strides=[5,5]"},
    {.name = "dilation_1_2_stride_2_1",
     .inputs = "f32[1,4,10,12] f32[8,4,3,2]!",
     .attrs = "dilations=[1,2] strides=[2,1] pads=[0,1,2,1]"},
    {.name = "asymmetric_pads",
     .inputs = "f32[1,3,10,10] f32[8,3,3,3]!",
     .attrs = "pads=[0,1,1,0] strides=[2,2]"},
    {.name = "same_upper",
     .inputs = "f32[1,3,15,10] f32[8,3,4,4]!",
     .attrs = "auto_pad=\"SAME_UPPER\" strides=[2,3]"},
    {.name = "same_lower",
     .inputs = "f32[1,3,15,10] f32[8,3,4,4]!",
     .attrs = "auto_pad=\"SAME_LOWER\" strides=[2,3]"},
    {.name = "valid",
     .inputs = "f32[1,3,9,9] f32[8,3,4,2]!",
     .attrs = "auto_pad=\"VALID\" kernel_shape=[4,2]"},
    {.name = "kernel_wider_than_the_input",
     .inputs = "f32[1,2,2,2] f32[3,2,5,5]!",
     .attrs = "pads=[2,2,2,2]"},
    {.name = "rows_of_padding",
     .inputs = "f32[2,16,1,6] f32[16,16,1,3]! f32[16]!",
     .attrs = "pads=[2,1,1,1]"},
    {.name = "more_rows_of_padding",
     .inputs = "f32[2,16,6,6] f32[16,16,3,3]! f32[16]!",
     .attrs = "pads=[3,0,3,0]"},
    {.name = "1xk", .inputs = "f32[1,12,9,17] f32[20,12,1,7]!", .attrs = "pads=[0,3,0,3]"},
    {.name = "1d",
     .inputs = "f32[2,6,33] f32[10,6,5]! f32[10]!",
     .attrs = "pads=[2,2] strides=[2]"},
    {.name = "1d_dilated", .inputs = "f32[1,3,40] f32[4,3,3]!", .attrs = "dilations=[4]"},
    {.name = "3d",
     .inputs = "f32[1,3,6,7,8] f32[5,3,3,2,3]! f32[5]!",
     .attrs = "pads=[1,0,1,1,1,1] strides=[1,2,1]"},
    {.name = "3d_group", .inputs = "f32[1,4,5,5,5] f32[6,2,2,2,2]!", .attrs = "group=2"},
    {.name = "3d_padded_plane",
     .inputs = "f32[2,3,1,5,6] f32[5,3,1,3,2]! f32[5]!",
     .attrs = "pads=[2,0,1,1,1,1]"},
    {.name = "3d_padded_plane_of_many_channels",
     .inputs = "f32[2,9,1,6,6] f32[20,9,1,3,3]!",
     .attrs = "pads=[1,1,1,1,1,1]"},
    {.name = "3d_padded_plane_depthwise",
     .inputs = "f32[2,16,1,6,6] f32[16,1,1,3,3]!",
     .attrs = "group=16 pads=[1,1,1,0,1,1]"},
    /* Planes that do not see each other: 2-d kernels compute them as images. */
    {.name = "3d_planes",
     .inputs = "f32[2,9,4,6,7] f32[20,9,1,3,3]! f32[20]!",
     .attrs = "pads=[0,1,1,0,1,1]"},
    {.name = "3d_planes_of_few_channels",
     .inputs = "f32[2,3,5,12,11] f32[16,3,1,5,5]!",
     .attrs = "strides=[1,2,2] pads=[0,2,1,0,2,1]"},
    {.name = "3d_planes_depthwise",
     .inputs = "f32[2,16,3,6,6] f32[16,1,1,3,3]!",
     .attrs = "group=16 pads=[0,1,1,0,1,1]"},
    {.name = "3d_planes_of_one_result", .inputs = "f32[2,8,4,3,3] f32[8,8,1,3,3]! f32[8]!"},
    {.name = "3d_planes_pointwise", .inputs = "f32[2,5,3,4,4] f32[6,5,1,1,1]!"},
    {.name = "3d_planes_apart",
     .inputs = "f32[1,8,7,6,6] f32[8,8,1,3,3]!",
     .attrs = "strides=[2,1,1] pads=[0,1,1,0,1,1]"},
    {.name = "3d_padding_alone",
     .inputs = "f32[1,4,1,6,6] f32[5,4,1,3,3]! f32[5]!",
     .attrs = "pads=[1,0,0,0,0,0] strides=[2,1,1]"},
};

REGISTER(op, conv) = {
    .name = "Conv",
    .narrow = NARROW_WORK,
    .inputs_min = 2,
    .inputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .plain_inputs = 1u << 1,
    .epilogue = true,
    .packs = true,
    .window = true,
    .window_input = 1,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
