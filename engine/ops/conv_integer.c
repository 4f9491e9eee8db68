/* SPDX-License-Identifier: Apache-2.0
 * ConvInteger: Conv of (x - x's zero point) and (weights - theirs) in i32. Doubles hold the sums
 * exactly: 2^37 products of bytes fit into 53 bits. */
#include <stdlib.h>

#include "engine/ops/compute/ref_conv.h"
#include "engine/ops/family/conv_shape.h"
#include "engine/ops/family/quantize.h"

static const char *const attrs[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                    "pads",     "strides",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct window w;
    struct shape y;
    TRY(conv_shape_from(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, &y, err));
    TRY(quantize_check(c, &c->in[0]->shape, 2, 1, err));
    TRY(quantize_check(c, &c->in[1]->shape, 3, 0, err));
    infer_set(c, 0, DTYPE_I32, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *weights = &c->in[1]->shape;
    cost->macs =
        (double)shape_count(&c->out[0]->shape) * (double)shape_span(weights, 1, weights->rank);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *y = call->out[0];
    double *x = quantize_centred(call->in[0], call->in_count > 2 ? call->in[2] : NULL, 1);
    double *w = quantize_centred(call->in[1], call->in_count > 3 ? call->in[3] : NULL, 0), *sums;
    TRY(ref_conv_integers(call, 1, x, w, &sums, err));
    for (int64_t i = 0; i < y->count; i++)
        y->i[i] = (int64_t)sums[i];
    free(sums);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "no_zero_points",
     .inputs = "u8[1,3,8,8]{0:256} u8[4,3,3,3]{0:256}!",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "zero_points", .inputs = "u8[2,5,7,6]{0:256} i8[4,5,3,3]{-128:128}! u8[]=130 i8[]=3"},
    {.name = "channels_of_words",
     .inputs = "u8[1,16,9,9]{0:256} i8[20,16,3,3]{-128:128}! u8[1]{0:256}",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "given_late",
     .inputs = "u8[2,3,13,12]{0:256} i8[17,3,5,5]{-128:128}! u8[]{0:256} i8[]=0",
     .attrs = "pads=[2,2,2,2] strides=[2,2]"},
    {.name = "signed",
     .inputs = "i8[1,8,6,7]{-128:128} u8[9,8,1,1]{0:256}! i8[]{-128:128} u8[]=128"},
    {.name = "deep",
     .inputs = "u8[1,256,5,5]{0:256} i8[40,256,3,3]{-128:128}! u8[]{0:256} i8[40]=0",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "groups",
     .inputs = "u8[2,16,7,6]{0:256} i8[24,4,3,3]{-128:128}! u8[]{0:256} i8[]=0",
     .attrs = "group=4 pads=[1,1,1,1]"},
    {.name = "depthwise",
     .inputs = "u8[2,35,9,8]{0:256} i8[35,1,3,3]{-128:128}! u8[]{0:256} i8[]=0",
     .attrs = "group=35 pads=[1,1,1,1] strides=[2,1]"},
    {.name = "depthwise_zeros",
     .inputs = "i8[1,20,7,6]{-128:128} u8[20,1,3,3]{0:256}! i8[]{-128:128} "
               "u8[20]=1,2,3,4,5,6,7,8,9,255,0,128,1,2,3,4,5,6,7,8",
     .attrs = "group=20 dilations=[2,2]"},
    {.name = "zero_point_per_channel",
     .inputs = "u8[1,4,7,7]{0:256} u8[3,4,3,3]{0:256}! u8[]=7 u8[3]=1,2,3",
     .attrs = "strides=[2,2]"},
};

REGISTER(op, conv_integer) = {
    .name = "ConvInteger",
    .inputs_min = 2,
    .inputs_max = 4,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .plain_inputs = 1u << 2 | 1u << 3,
    .window = true,
    .window_input = 1,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "integers have no gradient",
    OP_CASES(cases),
};
