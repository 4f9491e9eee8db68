/* SPDX-License-Identifier: Apache-2.0
 * StopGradient (ridge): x, through which nothing is trained: what was computed of the weights and
 * is then taken as given, as the regions are that a detector proposes to itself. */
#include "engine/ops/family/gradient.h"

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    for (int64_t k = 0; k < call->in[0]->count; k++)
        call->out[0]->f[k] = call->in[0]->f[k];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matrix", .inputs = "f32[2,37]"},
    {.name = "scalar", .inputs = "f32[]"},
};

REGISTER(op, stop_gradient) = {
    .name = "StopGradient",
    .domain = "ridge",
    .inputs_min = 1,
    .layout = LAYOUT_RULE_ANY,
    .alias = true,
    .infer = infer_same,
    .reference = reference,
    .no_gradient = "that is what it is for",
    OP_CASES(cases),
};
