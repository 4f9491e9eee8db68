/* SPDX-License-Identifier: Apache-2.0
 * Size: the number of elements. */
#include "engine/graph/op.h"

static enum status infer(const struct infer *c, struct error *err)
{
    (void)err;
    struct shape y = shape_scalar();
    infer_set(c, 0, DTYPE_I64, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    call->out[0]->i[0] = call->in[0]->count;
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "tensor", .inputs = "f32[2,3,4]"},
    {.name = "scalar", .inputs = "i64[]"},
    {.name = "empty", .inputs = "f32[3,0]"},
};

REGISTER(op, size) = {
    .name = "Size",
    .reads = READS_SHAPE,
    .inputs_min = 1,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a shape",
    OP_CASES(cases),
};
