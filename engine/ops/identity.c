/* SPDX-License-Identifier: Apache-2.0
 * Identity: the smallest operator, and the template for a new one. */
#include "engine/ops/family/gradient.h"

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    for (int64_t k = 0; k < x->count; k++) {
        if (dtype_is_float(x->dtype))
            call->out[0]->f[k] = x->f[k];
        else
            call->out[0]->i[k] = x->i[k];
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "float", .inputs = "f32[2,3,4]"},
    {.name = "integer", .inputs = "i64[5]"},
    {.name = "scalar", .inputs = "f32[]"},
};

REGISTER(op, identity) = {
    .name = "Identity",
    .inputs_min = 1,
    .layout = LAYOUT_RULE_ANY,
    .alias = true,
    .infer = infer_same,
    .reference = reference,
    .gradient = gradient_of_alias,
    OP_CASES(cases),
};
