/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast to the type of input 1, whose shape and contents do not matter. */
#include "engine/ops/lib/op_unary.h"

static enum status infer(const struct infer *c, struct error *err)
{
    (void)err;
    infer_set(c, 0, c->in[1]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    cast_reference(call->in[0], call->out[0]);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "f16", .inputs = "f32[67]{-3:3} f16[1]=0"},
    {.name = "bf16", .inputs = "f32[67]{-3:3} bf16[1]=0"},
    {.name = "integer", .inputs = "f32[5]=-2.75,-0.5,0.5,1.999,100 i32[2]=0"},
    {.name = "bool", .inputs = "f32[4]=0,-0,0.25,-3 bool[1]=0"},
    {.name = "float", .inputs = "i64[2,3] f32[4]"},
};

REGISTER(op, cast_like) = {
    .name = "CastLike",
    .inputs_min = 2,
    .infer = infer,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
