/* SPDX-License-Identifier: Apache-2.0
 * Hardmax: 1 at the first largest element of each line, 0 elsewhere. The line is an axis, or with
 * flatten = 1 (opsets before 13) everything from the axis on, as in Softmax. */
#include "engine/ops/family/softmax.h"

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

REGISTER(op, hardmax) = {
    .name = "Hardmax",
    .inputs_min = 1,
    .inputs_max = 1,
    .attrs = softmax_attrs,
    .infer = softmax_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it is flat: one or zero",
    OP_CASES(softmax_cases),
};
