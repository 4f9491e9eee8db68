/* SPDX-License-Identifier: Apache-2.0
 *
 * Between numbers and bool; strings are not supported. A conversion costs no FLOPs. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/op_args.h"
#include "engine/ops/lib/op_unary.h"

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t code = node_int(c->node, "to", 0);
    enum dtype to = dtype_from_onnx(code);
    if (to == DTYPE_NONE)
        return UNSUPPORTED(err, "Cast to ONNX type %lld (attribute to) is not supported",
                           (long long)code);
    if (to == DTYPE_F8E4M3 && !node_int(c->node, "saturate", 1))
        return UNSUPPORTED(err, "Cast to %s without saturation", dtype_name(to));
    infer_set(c, 0, to, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    cast_reference(call->in[0], call->out[0]);
    return STATUS_OK;
}

static const char *const attrs[] = {"saturate", "to", NULL};

/* to: 1 f32, 2 u8, 3 i8, 6 i32, 7 i64, 9 bool, 10 f16, 11 f64, 13 u64, 16 bf16, 17 f8e4m3. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    c->dx[0] = make_cast(g, c->dy[0], g->values[gradient_in(c, 0)].dtype);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "f32_f16", .inputs = "f32[67]{-3:3}", .attrs = "to=10"},
    {.name = "f32_f16_special", .inputs = "f32[5]=nan,inf,-inf,70000,1e-7", .attrs = "to=10"},
    {.name = "f16_f32", .inputs = "f16[67]{-3:3}", .attrs = "to=1"},
    {.name = "f32_bf16", .inputs = "f32[67]{-3:3}", .attrs = "to=16"},
    {.name = "bf16_ties", .inputs = "f32[4]=1.00390625,1.01171875,inf,nan", .attrs = "to=16"},
    {.name = "bf16_f32", .inputs = "bf16[67]{-3:3}", .attrs = "to=1"},
    {.name = "f32_f8", .inputs = "f32[1000]{-500:500}", .attrs = "to=17"},
    {.name = "f32_f8_small", .inputs = "f32[67]{-0.02:0.02}", .attrs = "to=17"},
    {.name = "f8_special",
     .inputs = "f32[9]=nan,inf,-inf,448,464,1e9,-1e9,0x1p-10,-0x1.8p-9",
     .attrs = "to=17 saturate=1"},
    {.name = "f8_ties",
     .inputs = "f32[6]=1.0625,1.1875,-1.0625,432,0x1.8p-10,0x1.e8p-7",
     .attrs = "to=17"},
    {.name = "bf16_f8", .inputs = "bf16[67]{-3:3}", .attrs = "to=17"},
    {.name = "f8_f32", .inputs = "f8e4m3[999]{-448:448}", .attrs = "to=1"},
    {.name = "f8_f16", .inputs = "f8e4m3[999]{-0.03:0.03}", .attrs = "to=10"},
    {.name = "f8_bf16", .inputs = "f8e4m3[999]{-448:448}", .attrs = "to=16"},
    {.name = "f8_bf16_nan", .inputs = "f8e4m3[3]=nan,-0.0,448", .attrs = "to=16"},
    {.name = "f32_f64", .inputs = "f32[67]{-3:3}", .attrs = "to=11"},
    {.name = "f64_f32", .inputs = "f64[67]{-3:3}", .attrs = "to=1"},
    {.name = "f32_i32", .inputs = "f32[8]=-2.75,-0.5,0.5,1.999,100,-100,2e9,0", .attrs = "to=6"},
    {.name = "f32_i64", .inputs = "f32[8]=-2.75,-0.5,0.5,1.999,100,-100,4e18,0", .attrs = "to=7"},
    {.name = "f32_u8", .inputs = "f32[5]=0.75,1.5,254.9,255,0", .attrs = "to=2"},
    {.name = "f32_bool", .inputs = "f32[5]=0,-0,0.25,-3,nan", .attrs = "to=9"},
    {.name = "i64_f32", .inputs = "i64[4]=0,-5,16777217,1000000", .attrs = "to=1"},
    {.name = "u64_f32", .inputs = "u64[2]=18446744073709551615,7", .attrs = "to=1"},
    {.name = "i32_i8", .inputs = "i32[5]=0,127,128,-129,1000", .attrs = "to=3"},
    {.name = "i8_u64", .inputs = "i8[2]=-1,5", .attrs = "to=13"},
    {.name = "i64_bool", .inputs = "i64[4]=0,1,256,-1", .attrs = "to=9"},
    {.name = "bool_f32", .inputs = "bool[67]", .attrs = "to=1"},
    {.name = "bool_i64", .inputs = "bool[67]", .attrs = "to=7"},
    {.name = "i32_f32_image", .inputs = "i32[2,5,3,7]{-50:50}", .attrs = "to=1"},
    {.name = "same", .inputs = "f32[2,5,3,7]", .attrs = "to=1"},
    {.name = "many_i32_f32", .inputs = "i32[3001]{-50:50}", .attrs = "to=1"},
    {.name = "groups_of_f16_f32", .inputs = "f16[1000]{-3:3}", .attrs = "to=1"},
    {.name = "groups_of_f16_bf16", .inputs = "f16[1000]{-3:3}", .attrs = "to=16"},
    {.name = "fours_of_bf16_f16", .inputs = "bf16[68]{-3:3}", .attrs = "to=10"},
    {.name = "groups_of_f8_f32", .inputs = "f8e4m3[1000]{-448:448}", .attrs = "to=1"},
    {.name = "groups_of_f8_bf16", .inputs = "f8e4m3[1000]{-448:448}", .attrs = "to=16"},
};

REGISTER(op, cast) = {
    .name = "Cast",
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
