/* SPDX-License-Identifier: Apache-2.0
 * Range: start, start + delta, ... up to but without limit. */
#include <math.h>

#include "engine/graph/op.h"

static enum status infer(const struct infer *c, struct error *err)
{
    double at[3];
    for (int k = 0; k < 3; k++) {
        int count;
        TRY(infer_floats(c, k, &at[k], 1, &count, err));
        if (count != 1)
            return FAIL(err, STATUS_FAILED, "input %d of Range is not one number", k);
    }
    double count = ceil((at[1] - at[0]) / at[2]);
    if (!(fabs(count) < 0x1p40))
        return FAIL(err, STATUS_FAILED, "Range from %g to %g by %g does not end", at[0], at[1],
                    at[2]);
    struct shape y = shape_of(count > 0 ? (int64_t)count : 0);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *start = call->in[0], *delta = call->in[2], *y = call->out[0];
    for (int64_t k = 0; k < y->count; k++) {
        if (y->f)
            y->f[k] = start->f[0] + (double)k * delta->f[0];
        else
            y->i[k] = start->i[0] + k * delta->i[0];
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "integers", .inputs = "i64[]=3 i64[]=17 i64[]=4"},
    {.name = "down", .inputs = "i32[]=10 i32[]=4 i32[]=-2"},
    {.name = "floats", .inputs = "f32[]=0.5 f32[]=2.25 f32[]=0.25"},
    {.name = "none", .inputs = "i64[]=3 i64[]=3 i64[]=1"},
};

REGISTER(op, range) = {
    .name = "Range",
    .inputs_min = 3,
    .const_inputs = 7u,
    .infer = infer,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
