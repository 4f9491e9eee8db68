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
    bool negative = node_int(call->node, "detect_negative", 1) != 0;
    bool positive = node_int(call->node, "detect_positive", 1) != 0;
    for (int64_t k = 0; k < call->in[0]->count; k++) {
        double x = call->in[0]->f[k];
        call->out[0]->i[k] = isinf(x) && (x < 0 ? negative : positive);
    }
    return STATUS_OK;
}

static const char *const attrs[] = {"detect_negative", "detect_positive", NULL};

static const struct op_case cases[] = {
    {.name = "special", .inputs = "f32[6]=nan,inf,-inf,0,1,inf"},
    {.name = "positive", .inputs = "f32[3]=nan,inf,-inf", .attrs = "detect_negative=0"},
    {.name = "negative", .inputs = "f32[3]=nan,inf,-inf", .attrs = "detect_positive=0"},
    {.name = "nothing",
     .inputs = "f32[3]=nan,inf,-inf",
     .attrs = "detect_negative=0 detect_positive=0"},
    {.name = "scalar", .inputs = "f32[]=-inf"},
    {.name = "long",
     .inputs = "f32[35]=0,inf,1,2,3,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,18,19,"
               "20,21,22,23,24,25,26,27,28,29,30,nan,-inf,inf,3.4e38"},
    {.name = "long_positive",
     .inputs = "f32[19]=0,inf,1,2,3,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,inf",
     .attrs = "detect_negative=0"},
    {.name = "long_negative",
     .inputs = "f32[19]=0,inf,1,2,3,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,-inf",
     .attrs = "detect_positive=0"},
    {.name = "long_groups",
     .inputs = "f32[20]=0,inf,1,2,3,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,inf,-inf",
     .attrs = "detect_positive=0"},
    {.name = "none", .inputs = "f32[3,0]"},
    {.name = "image", .inputs = "f32[2,5,3,7]"},
    {.name = "f16",
     .inputs = "f16[19]=0,inf,1,2,nan,4,nan,-inf,8,9,10,11,12,13,14,inf,-inf,17,nan"},
    {.name = "bf16", .inputs = "bf16[2,8]=0,inf,1,2,nan,4,nan,-inf,8,9,10,11,12,13,inf,nan"},
    {.name = "double", .inputs = "f64[3]=nan,0,inf"},
};

REGISTER(op, is_inf) = {
    .name = "IsInf",
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a truth value",
    OP_CASES(cases),
};
