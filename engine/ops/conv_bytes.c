/* SPDX-License-Identifier: Apache-2.0
 * ConvBytes: Conv of x - x_zero and weights - w_zero, both bytes, in i32; then sum times scale plus
 * offset, each of them and each result an f32, of the output channel, clamped to [low, high]. With
 * ONNX's type `to` that is the result (f32), or it is rounded, moved by `zero` and saturated (u8,
 * i8). A pass (engine/compile/passes/absorb_bytes.c) makes it of QuantizeLinear, DequantizeLinear
 * and Conv; files never have it. Every step is exact or rounded in one defined way: all kernels
 * give the same bits. */
#include <stdlib.h>

#include "engine/ops/compute/ref_conv.h"
#include "engine/ops/family/conv_shape.h"
#include "engine/ops/family/rescale.h"

static const char *const attrs[] = {"auto_pad", "dilations", "group",  "kernel_shape", "pads",
                                    "strides",  "x_zero",    "w_zero", "to",           "low",
                                    "high",     "zero",      NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct window w;
    struct shape y;
    TRY(conv_shape_from(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, &y, err));
    TRY(rescale_check(c, y.dim[1], err));
    infer_set(c, 0, rescale_type(c->node), &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *weights = &c->in[1]->shape;
    double outputs = (double)shape_count(&c->out[0]->shape);
    cost->macs = outputs * (double)shape_span(weights, 1, weights->rank);
    cost->elementwise = 2 * outputs;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *y = &call->out[0]->shape;
    double *x = rescale_centred(call, 0), *w = rescale_centred(call, 1), *sums;
    TRY(ref_conv_integers(call, 1, x, w, &sums, err));
    rescale_sums(call, sums, shape_span(y, 2, y->rank));
    free(sums);
    return STATUS_OK;
}

/* to: 1 f32, 2 u8, 3 i8. */
static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[1,16,8,8]{0:256} i8[20,16,3,3]{-128:128}! f32[20]{0.0001:0.002}! f32[20]!",
     .attrs = "pads=[1,1,1,1] to=2 x_zero=120 zero=99"},
    {.name = "pointwise",
     .inputs = "u8[1,64,9,7]{0:256} i8[48,64,1,1]{-128:128}! f32[48]{0.0001:0.002}! f32[48]!",
     .attrs = "to=2 x_zero=3 zero=128"},
    {.name = "i8",
     .inputs =
         "i8[2,8,7,9]{-128:128} i8[33,8,3,3]{-128:128}! f32[33]{0.0001:0.003}! f32[33]{-9:9}!",
     .attrs = "pads=[1,1,1,1] to=3 x_zero=-7 zero=5"},
    {.name = "u8_weights",
     .inputs = "u8[1,8,6,6]{0:256} u8[5,8,3,3]{0:256}! f32[5]{0.0001:0.003}! f32[5]{-9:9}!",
     .attrs = "w_zero=128 to=2 zero=17"},
    {.name = "stem",
     .inputs = "u8[1,3,19,23]{0:256} i8[32,3,7,7]{-128:128}! f32[32]{0.0001:0.002}! f32[32]{-9:9}!",
     .attrs = "pads=[3,3,3,3] strides=[2,2] to=2 x_zero=114 zero=60"},
    {.name = "signed_stem",
     .inputs = "i8[2,3,11,10]{-128:128} i8[16,3,3,3]{-128:128}! f32[16]{0.0001:0.01}! f32[16]!",
     .attrs = "pads=[1,0,1,2] strides=[2,1] to=3 x_zero=11 zero=-3"},
    {.name = "odd_channels",
     .inputs = "u8[1,13,6,7]{0:256} i8[9,13,3,2]{-128:128}! f32[9]{0.0001:0.003}! f32[9]{-9:9}!",
     .attrs = "pads=[0,1,1,0] to=2 x_zero=255"},
    {.name = "odd_channels_dilated",
     .inputs = "u8[1,6,9,9]{0:256} i8[9,6,3,3]{-128:128}! f32[9]{0.0001:0.01}! f32[9]{-9:9}!",
     .attrs = "pads=[2,2,2,2] dilations=[2,2] to=2 x_zero=20 zero=1"},
    {.name = "dilated",
     .inputs = "u8[1,8,9,9]{0:256} i8[16,8,3,3]{-128:128}! f32[16]{0.0001:0.01}! f32[16]{-9:9}!",
     .attrs = "pads=[2,2,2,2] dilations=[2,2] to=2 x_zero=20 zero=1"},
    {.name = "relu6",
     .inputs = "u8[1,8,6,6]{0:256} i8[16,8,1,1]{-128:128}! f32[16]{0.001:0.01}! f32[16]{-9:9}!",
     .attrs = "to=2 low=0.0 high=200.5 x_zero=128 zero=3"},
    {.name = "f32",
     .inputs = "u8[1,16,5,6]{0:256} i8[24,16,3,3]{-128:128}! f32[24]{0.0001:0.002}! f32[24]!",
     .attrs = "pads=[1,1,1,1] to=1 x_zero=120"},
    {.name = "f32_clamped",
     .inputs = "i8[3,4,5,6]{-128:128} i8[7,4,1,1]{-128:128}! f32[7]{0.0001:0.002}! f32[7]!",
     .attrs = "to=1 low=0.0 high=6.0 strides=[2,2] x_zero=-1"},
    {.name = "deep",
     .inputs = "u8[1,256,5,5]{0:256} i8[40,256,3,3]{-128:128}! f32[40]{0.00001:0.0002}! f32[40]!",
     .attrs = "pads=[1,1,1,1] to=2 x_zero=7 zero=128"},
    {.name = "lines",
     .inputs = "u8[2,12,40]{0:256} i8[17,12,5]{-128:128}! f32[17]{0.0001:0.004}! f32[17]!",
     .attrs = "pads=[2,2] to=2 x_zero=99 zero=128"},
    {.name = "volumes",
     .inputs = "u8[1,4,4,5,6]{0:256} i8[16,4,3,3,3]{-128:128}! f32[16]{0.0001:0.004}! f32[16]!",
     .attrs = "pads=[1,1,1,1,1,1] strides=[1,2,1] to=2 x_zero=99 zero=128"},
    {.name = "odd_volumes",
     .inputs = "i8[1,3,4,5,6]{-128:128} i8[16,3,3,3,3]{-128:128}! f32[16]{0.0001:0.004}! f32[16]!",
     .attrs = "pads=[1,1,1,1,1,1] to=3 x_zero=9 zero=-12"},
    {.name = "groups",
     .inputs = "u8[1,16,6,5]{0:256} i8[24,4,3,3]{-128:128}! f32[24]{0.0001:0.004}! f32[24]!",
     .attrs = "group=4 pads=[1,1,1,1] to=2 x_zero=99 zero=128"},
    {.name = "groups_signed",
     .inputs = "i8[2,24,5,4]{-128:128} u8[36,8,3,3]{0:256}! f32[36]{0.0001:0.002}! f32[36]{-9:9}!",
     .attrs = "group=3 pads=[1,1,1,1] strides=[2,1] to=3 x_zero=-7 w_zero=128 zero=5 low=-9.0"},
    {.name = "groups_f32",
     .inputs = "u8[1,64,6,6]{0:256} i8[64,32,3,3]{-128:128}! f32[64]{0.00001:0.0002}! f32[64]!",
     .attrs = "group=2 pads=[1,1,1,1] to=1 x_zero=131"},
    {.name = "depthwise",
     .inputs = "u8[2,35,9,8]{0:256} i8[35,1,3,3]{-128:128}! f32[35]{0.001:0.02}! f32[35]{-9:9}!",
     .attrs = "group=35 pads=[1,1,1,1] strides=[2,1] to=2 x_zero=99 zero=128"},
    {.name = "depthwise_signed",
     .inputs = "i8[1,130,5,6]{-128:128} u8[130,1,5,5]{0:256}! f32[130]{0.001:0.01}! f32[130]!",
     .attrs = "group=130 pads=[2,2,2,2] to=3 x_zero=-9 w_zero=128 zero=-1 low=0.0"},
    {.name = "depthwise_f32",
     .inputs = "u8[1,20,7,6]{0:256} i8[20,1,3,3]{-128:128}! f32[20]{0.001:0.02}! f32[20]!",
     .attrs = "group=20 dilations=[2,2] to=1 x_zero=3"},
    {.name = "depthwise_lines",
     .inputs = "u8[1,64,20]{0:256} i8[64,1,31]{-128:128}! f32[64]{0.0005:0.003}! f32[64]{-9:9}!",
     .attrs = "group=64 pads=[15,15] to=2 x_zero=200 zero=120"},
    {.name = "saturates",
     .inputs = "u8[1,4,3,3]{0:256} i8[4,4,1,1]{-128:128}! f32[4]=1,2,3,1000000 f32[4]=0,1,-1,0",
     .attrs = "to=2 x_zero=128 zero=200"},
};

REGISTER(op, conv_bytes) = {
    .name = "ConvBytes",
    .domain = "ridge",
    .inputs_min = 4,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .window = true,
    .window_input = 1,
    .epilogue = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
