/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear: saturate(round(x / scale) + zero point), one scale for all, per index of `axis`
 * or per block of it. The quotient is rounded to f32 first, since a tie decides the result. */
#include <math.h>

#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"axis",      "block_size", "output_dtype",
                                    "precision", "saturate",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t code = node_int(c->node, "output_dtype", 0);
    enum dtype type = code ? dtype_from_onnx(code) : DTYPE_U8;
    if (infer_has(c, 2))
        type = c->in[2]->dtype;
    if (type != DTYPE_I8 && type != DTYPE_U8 && type != DTYPE_I16 && type != DTYPE_U16 &&
        type != DTYPE_F8E4M3)
        return UNSUPPORTED(err, "QuantizeLinear to %s", dtype_name(type));
    if (type == DTYPE_F8E4M3 && !node_int(c->node, "saturate", 1))
        return UNSUPPORTED(err, "QuantizeLinear to %s without saturation", dtype_name(type));
    TRY(quantize_check_scales(c, err));
    infer_set(c, 0, type, &c->in[0]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 2 * (double)shape_count(&c->in[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *scale = call->in[1], *y = call->out[0];
    const struct ref_tensor *zero_point = call->in_count > 2 ? call->in[2] : NULL;
    struct quantize_scales scales;
    TRY(quantize_scales_from(call->node, &x->shape, &scale->shape, &scales, err));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = quantize_scales_index(&scales, i);
        double quotient = (double)((float)ref_get(x, i) / (float)ref_get(scale, at));
        double offset = zero_point ? ref_get(zero_point, at) : 0;
        if (y->f) /* f8: rounded to its codes instead, the zero point is 0 */
            y->f[i] = (double)f8_to_float(f8_from_float((float)quotient));
        else
            y->i[i] = quantize_saturate(y->dtype, rint(quotient) + offset);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "u8", .inputs = "f32[3,67]{-9:9} f32[]=0.07 u8[]=128"},
    {.name = "i8", .inputs = "f32[3,67]{-9:9} f32[]=0.07 i8[]=-3"},
    {.name = "no_zero_point", .inputs = "f32[40]{-1:9} f32[]=0.02"},
    {.name = "ties_and_limits",
     .inputs = "f32[10]=-1.5,-0.5,0.5,1.5,2.5,3.5,600,-600,254,255 f32[]=1 u8[]=1"},
    {.name = "per_channel",
     .inputs = "f32[2,3,5,4]{-9:9} f32[3]=0.1,0.05,0.2 i8[3]=0,5,-5",
     .attrs = "axis=1"},
    {.name = "blocked",
     .inputs = "f32[2,6]{-9:9} f32[2,3]=0.1,0.2,0.05,0.3,0.07,0.15 u8[2,3]=128",
     .attrs = "axis=1 block_size=2"},
    {.name = "f8", .inputs = "f32[3,67]{-9:9} f32[]=0.01 f8e4m3[]=0"},
    {.name = "f8_by_attribute",
     .inputs = "f32[40]{-9:9} f32[]=0.02",
     .attrs = "output_dtype=17 saturate=1"},
    {.name = "i16", .inputs = "f32[33]{-9:9} f32[]=0.0003 i16[]=10"},
};

REGISTER(op, quantize_linear) = {
    .name = "QuantizeLinear",
    .inputs_min = 2,
    .inputs_max = 3,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
