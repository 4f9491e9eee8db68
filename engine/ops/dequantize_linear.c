/* SPDX-License-Identifier: Apache-2.0
 * DequantizeLinear: (x - zero point) * scale; scales as in QuantizeLinear. */
#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"axis", "block_size", "output_dtype", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t code = node_int(c->node, "output_dtype", 0);
    enum dtype type = code ? dtype_from_onnx(code) : c->in[1]->dtype;
    if (!dtype_is_float(type))
        return UNSUPPORTED(err, "DequantizeLinear to %s", dtype_name(type));
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
    const struct ref_tensor *x = call->in[0], *scale = call->in[1];
    const struct ref_tensor *zero_point = call->in_count > 2 ? call->in[2] : NULL;
    struct quantize_scales scales;
    TRY(quantize_scales_from(call->node, &x->shape, &scale->shape, &scales, err));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = quantize_scales_index(&scales, i);
        double offset = zero_point ? ref_get(zero_point, at) : 0;
        call->out[0]->f[i] = (ref_get(x, i) - offset) * scale->f[at];
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "u8", .inputs = "u8[3,67]{0:256} f32[]=0.07 u8[]=128"},
    {.name = "i8", .inputs = "i8[3,67]{-128:128} f32[]=0.07 i8[]=-3"},
    {.name = "i32", .inputs = "i32[40]{-5000:5000} f32[]=0.001"},
    {.name = "f8", .inputs = "f8e4m3[3,67]{-448:448} f32[]=0.07"},
    {.name = "f8_zero_point", .inputs = "f8e4m3[40]{-9:9} f32[]=0.5 f8e4m3[]=0"},
    {.name = "f8_bf16", .inputs = "f8e4m3[40]{-448:448} bf16[]=0.25"},
    {.name = "per_channel",
     .inputs = "i8[2,3,5,4]{-128:128} f32[3]=0.1,0.05,0.2 i8[3]=0,5,-5",
     .attrs = "axis=1"},
    {.name = "per_row", .inputs = "u8[4,9]{0:256} f32[4]=0.1,0.2,0.3,0.4", .attrs = "axis=0"},
    {.name = "last_axis",
     .inputs = "i8[5,67]{-128:128} f32[67]{0.01:0.2} i8[67]{-128:128}",
     .attrs = "axis=-1"},
    {.name = "last_axis_without_zero_point", .inputs = "u8[3,35]{0:256} f32[35]{0.01:0.2}"},
    {.name = "more_than_a_tile",
     .inputs = "u8[5,7001]{0:256} f32[5]{0.01:0.2} u8[5]{0:256}",
     .attrs = "axis=0"},
    {.name = "i32_per_channel",
     .inputs = "i32[2,3,9]{-5000:5000} f32[3]{0.01:0.2}",
     .attrs = "axis=1"},
    {.name = "i32_zero_point",
     .inputs = "i32[3]=2000000001,2000000003,2000000000 f32[]=0.5 i32[]=2000000000"},
    {.name = "i16", .inputs = "i16[33]{-32768:32768} f32[]=0.01 i16[]=10"},
    {.name = "u16", .inputs = "u16[33]{0:65536} f32[]=0.01 u16[]=40000"},
    {.name = "last_axis_in_groups",
     .inputs = "i8[5,64]{-128:128} f32[64]{0.01:0.2} i8[64]{-128:128}"},
    {.name = "u16_last_axis", .inputs = "u16[3,12]{0:65536} f32[12]{0.01:0.1} u16[12]{0:65536}"},
    {.name = "i32_last_axis", .inputs = "i32[3,12]{-5000:5000} f32[12]{0.01:0.1}"},
    {.name = "f16", .inputs = "u8[3,64]{0:256} f16[]=0.07 u8[]=128"},
    {.name = "bf16_per_channel",
     .inputs = "i16[2,3,8]{-100:100} bf16[3]{0.01:0.2} i16[3]{-100:100}"},
    {.name = "f16_last_axis", .inputs = "i8[5,24]{-128:128} f16[24]{0.01:0.2} i8[24]{-128:128}"},
    {.name = "of_nothing", .inputs = "i8[0,3] f32[3]=0.1,0.2,0.3 i8[3]=1,2,3"},
    {.name = "scalar", .inputs = "i8[]{-128:128} f32[]=0.3 i8[]=5"},
    {.name = "blocked",
     .inputs = "u8[2,6]{0:256} f32[2,3]=0.1,0.2,0.05,0.3,0.07,0.15 u8[2,3]=128",
     .attrs = "axis=1 block_size=2"},
};

REGISTER(op, dequantize_linear) = {
    .name = "DequantizeLinear",
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
