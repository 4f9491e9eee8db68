/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear: saturate(round(x / scale) + zero point), one scale for all, per index of `axis`
 * or per block of it. */
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
        double offset = zero_point ? ref_get(zero_point, at) : 0;
        ref_set(y, i, quantize_number(y->dtype, ref_get(x, i), ref_get(scale, at), offset));
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
    {.name = "not_a_number", .inputs = "f32[8]=nan,inf,-inf,1e30,-1e30,0,-0.0,3 f32[]=0.5 i8[]=-7"},
    {.name = "scale_0", .inputs = "f32[4]=1,-1,0,nan f32[]=0 u8[]=9"},
    {.name = "ties_of_last_axis",
     .inputs = "f32[2,7]=-1.5,-0.5,0.5,1.5,2.5,3.5,600,-600,254,255,6.5,7.5,127.5,128.5 "
               "f32[7]=1,1,1,1,0.5,1,1 i8[7]=0,1,-1,127,-128,5,3",
     .attrs = "axis=-1"},
    {.name = "last_axis", .inputs = "f32[5,67]{-9:9} f32[67]{0.01:0.2} u8[67]{0:256}"},
    {.name = "last_axis_without_zero_point", .inputs = "f32[3,35]{-9:9} f32[35]{0.01:0.2}"},
    {.name = "first_axis",
     .inputs = "f32[3,50]{-9:9} f32[3]=0.07,0.01,0.3 u8[3]=0,255,99",
     .attrs = "axis=0"},
    {.name = "more_than_a_tile",
     .inputs = "f32[5,7001]{-9:9} f32[5]{0.01:0.2} i8[5]{-128:128}",
     .attrs = "axis=0"},
    {.name = "of_nothing", .inputs = "f32[0,3] f32[3]=0.1,0.2,0.3 u8[3]=1,2,3"},
    {.name = "scalar", .inputs = "f32[]{-9:9} f32[]=0.3 u8[]=5"},
    {.name = "u16", .inputs = "f32[33]{-9:9} f32[]=0.0003 u16[]=40000"},
    {.name = "u16_per_channel",
     .inputs = "f32[2,3,9]{-9:9} f32[3]=0.0001,0.5,0.001 u16[3]{0:65536}"},
    {.name = "last_axis_in_groups", .inputs = "f32[5,64]{-9:9} f32[64]{0.01:0.2} i8[64]{-128:128}"},
    {.name = "u16_last_axis", .inputs = "f32[3,12]{-9:9} f32[12]{0.0001:0.1} u16[12]{0:65536}"},
    {.name = "f16", .inputs = "f16[3,64]{-9:9} f16[]=0.07 u8[]=128"},
    {.name = "bf16_per_channel", .inputs = "bf16[2,3,8]{-9:9} bf16[3]{0.01:0.2} i16[3]{-100:100}"},
    {.name = "f16_last_axis", .inputs = "f16[5,24]{-9:9} f16[24]{0.01:0.2} u8[24]{0:256}"},
    {.name = "i16", .inputs = "f32[33]{-9:9} f32[]=0.0003 i16[]=10"},
};

REGISTER(op, quantize_linear) = {
    .name = "QuantizeLinear",
    .inputs_min = 2,
    .inputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
