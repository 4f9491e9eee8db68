/* SPDX-License-Identifier: Apache-2.0
 * Hardmax: 1 at the first largest element of each line, 0 elsewhere. The line is an axis, or with
 * flatten = 1 (opsets before 13) everything from the axis on, as in Softmax. */
#include "engine/ops/lib/axis.h"

static const char *const attrs[] = {"axis", "flatten", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct axis axis;
    TRY(axis_of_softmax(c->node, &c->in[0]->shape, &axis, err));
    return infer_same(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct axis axis;
    const struct ref_tensor *x = call->in[0];
    TRY(axis_of_softmax(call->node, &x->shape, &axis, err));
    for (int64_t line = 0; axis.size && line < axis.outer * axis.inner; line++) {
        int64_t base = line / axis.inner * axis.size * axis.inner + line % axis.inner, best = base;
        for (int64_t k = 1; k < axis.size; k++)
            if (x->f[base + k * axis.inner] > x->f[best])
                best = base + k * axis.inner;
        call->out[0]->f[best] = 1;
    }
    return STATUS_OK;
}

/* One comparison per element. */
static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise += (double)shape_count(&c->in[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "last", .inputs = "f32[3,4,5]"},
    {.name = "axis", .inputs = "f32[3,4,5]", .attrs = "axis=1"},
    {.name = "ties", .inputs = "f32[2,4]=3,1,3,0,0,2,1,2"},
    {.name = "flatten", .inputs = "f32[3,4,5]", .attrs = "flatten=1"},
};

REGISTER(op, hardmax) = {
    .name = "Hardmax",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs_min = 1,
    .outputs_max = 1,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    OP_CASES(cases),
};
