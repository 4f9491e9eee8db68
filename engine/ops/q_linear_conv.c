/* SPDX-License-Identifier: Apache-2.0
 * QLinearConv: Conv of dequantised x and weights, quantised again. Inputs x, scale, zero point;
 * weights, scale, zero point (one or one per output channel); y's scale, zero point; i32 bias in
 * units of x's times the weights' scale. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/compute/ref_conv.h"
#include "engine/ops/family/conv_shape.h"
#include "engine/ops/family/quantize.h"

enum { X, X_SCALE, X_ZERO, WEIGHTS, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static const char *const attrs[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                    "pads",     "strides",   NULL};

static enum status check(const struct infer *c, struct error *err)
{
    const struct shape *weights = &c->in[WEIGHTS]->shape, one = {.rank = 0};
    struct shape channels = shape_of(weights->dim[0]);
    TRY(quantize_check(c, &one, X_SCALE, 0, err));
    TRY(quantize_check(c, &c->in[X]->shape, X_ZERO, 1, err));
    TRY(quantize_check(c, &channels, W_SCALE, 0, err));
    TRY(quantize_check(c, weights, W_ZERO, 0, err));
    TRY(quantize_check(c, &one, Y_SCALE, 0, err));
    TRY(quantize_check(c, &one, Y_ZERO, 0, err));
    if (infer_has(c, BIAS) && !shape_equal(&c->in[BIAS]->shape, &channels))
        return FAIL(err, STATUS_FAILED,
                    "QLinearConv: the bias has not one element for each of "
                    "%lld channels",
                    (long long)channels.dim[0]);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct window w;
    struct shape y;
    TRY(conv_shape_from(c->node, &c->in[X]->shape, &c->in[WEIGHTS]->shape, &w, &y, err));
    TRY(check(c, err));
    infer_set(c, 0, c->in[Y_ZERO]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *weights = &c->in[WEIGHTS]->shape;
    double outputs = (double)shape_count(&c->out[0]->shape);
    cost->macs = outputs * (double)shape_span(weights, 1, weights->rank);
    cost->elementwise = (infer_has(c, BIAS) ? 3 : 2) * outputs;
}

/* Sums of integer products to y's type. */
static void requantise(const struct ref_call *call, const double *sums)
{
    const struct ref_tensor *const *in = call->in, *y = call->out[0];
    const struct ref_tensor *bias = call->in_count > BIAS ? in[BIAS] : NULL;
    int64_t plane = shape_span(&y->shape, 2, y->shape.rank), channels = y->shape.dim[1];
    for (int64_t i = 0; i < y->count; i++) {
        int64_t channel = i / plane % channels;
        double weight_scale = in[W_SCALE]->f[in[W_SCALE]->count == 1 ? 0 : channel];
        double sum = sums[i] + (bias ? ref_get(bias, channel) : 0);
        double scaled = sum * in[X_SCALE]->f[0] * weight_scale / in[Y_SCALE]->f[0];
        y->i[i] = quantize_saturate(y->dtype, rint(scaled) + ref_get(in[Y_ZERO], 0));
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    double *x = quantize_centred(call->in[X], call->in[X_ZERO], 1);
    double *w = quantize_centred(call->in[WEIGHTS], call->in[W_ZERO], 0), *sums;
    TRY(ref_conv_integers(call, WEIGHTS, x, w, &sums, err));
    requantise(call, sums);
    free(sums);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[1,3,8,8]{0:256} f32[]=0.02 u8[]=120 u8[4,3,3,3]{0:256}! f32[]=0.013 u8[]=127 "
               "f32[]=0.07 u8[]=128",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "i8_per_channel_bias",
     .inputs = "u8[1,5,7,6]{0:256} f32[]=0.02 u8[]=3 i8[3,5,3,3]{-128:128}! f32[3]=0.01,0.02,0.015 "
               "i8[3]=0 f32[]=0.05 u8[]=100 i32[3]=500,-300,20"},
    {.name = "signed",
     .inputs = "i8[2,4,6,6]{-128:128} f32[]=0.02 i8[]=-5 i8[4,1,3,3]{-128:128}! f32[]=0.01 i8[]=0 "
               "f32[]=0.04 i8[]=7",
     .attrs = "group=4 strides=[2,2]"},
};

REGISTER(op, q_linear_conv) = {
    .name = "QLinearConv",
    .inputs_min = 8,
    .inputs_max = 9,
    .attrs = attrs,
    .window = true,
    .window_input = 3,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
