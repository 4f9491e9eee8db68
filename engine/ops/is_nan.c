/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(op_check_type(c, 0, OP_FLOAT, err));
    infer_set(c, 0, DTYPE_BOOL, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    for (int64_t k = 0; k < call->in[0]->count; k++)
        call->out[0]->i[k] = isnan(call->in[0]->f[k]);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "special", .inputs = "f32[6]=nan,inf,-inf,0,1,nan"},
    {.name = "scalar", .inputs = "f32[]=nan"},
    {.name = "long",
     .inputs = "f32[35]=0,nan,1,2,3,4,nan,-inf,8,9,10,11,12,13,14,nan,inf,nan,18,19,"
               "20,21,22,23,24,25,26,27,28,29,30,nan,-inf,inf,nan"},
    {.name = "groups", .inputs = "f32[12]=0,nan,1,2,3,4,nan,-inf,8,inf,10,nan"},
    {.name = "none", .inputs = "f32[0]"},
    {.name = "image", .inputs = "f32[2,5,3,7]"},
    {.name = "f16",
     .inputs = "f16[19]=0,inf,1,2,nan,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,nan"},
    {.name = "bf16", .inputs = "bf16[2,8]=0,inf,1,2,nan,4,nan,-inf,8,9,10,11,12,13,inf,nan"},
    {.name = "double", .inputs = "f64[3]=nan,0,inf"},
};

REGISTER(op, is_nan) = {
    .name = "IsNaN",
    .inputs_min = 1,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a truth value",
    OP_CASES(cases),
};
