/* SPDX-License-Identifier: Apache-2.0
 * GlobalNorm: the square root of the sum of the squares of all elements of all inputs. */
#include <math.h>

#include "engine/graph/op.h"

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape scalar = shape_scalar();
    for (int k = 0; k < c->in_count; k++)
        if (!c->in[k] || !dtype_is_float(c->in[k]->dtype))
            return FAIL(err, STATUS_FAILED, "GlobalNorm: input %d is missing or holds no floats",
                        k);
    infer_set(c, 0, c->in[0]->dtype, &scalar);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    for (int k = 0; k < c->in_count; k++)
        cost->elementwise += 2 * (double)shape_count(&c->in[k]->shape);
    cost->transcendentals = 1;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    double sum = 0;
    (void)err;
    for (int k = 0; k < call->in_count; k++)
        for (int64_t e = 0; e < call->in[k]->count; e++)
            sum += call->in[k]->f[e] * call->in[k]->f[e];
    call->out[0]->f[0] = sqrt(sum);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "several", .inputs = "f32[7,5] f32[1031] f32[2,3,3,3] f32[1]"},
    {.name = "large", .inputs = "f32[70000] f32[300,40]"},
    {.name = "empty", .inputs = "f32[0] f32[4]"},
};

REGISTER(op, global_norm) = {
    .name = "GlobalNorm",
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = -1,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it serves updates, which nothing is trained through",
    OP_CASES(cases),
};
