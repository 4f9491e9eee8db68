/* SPDX-License-Identifier: Apache-2.0
 * Hardmax: 1 at the first largest element of each line, 0 elsewhere. The line is an axis, or with
 * flatten = 1 (opsets before 13) everything from the axis on, as in Softmax. */
#include "engine/ops/family/softmax.h"

static void line(const struct axis *axis, const double *x, double *y)
{
    int64_t best = 0;
    for (int64_t k = axis->inner; k < axis->size * axis->inner; k += axis->inner)
        best = x[k] > x[best] ? k : best;
    y[best] = 1;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return softmax_reference(call, line, err);
}

/* One comparison per element. */
static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise += (double)shape_count(&c->in[0]->shape);
}

REGISTER(op, hardmax) = {
    .name = "Hardmax",
    .inputs_min = 1,
    .attrs = softmax_attrs,
    .infer = softmax_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it is flat: one or zero",
    OP_CASES(softmax_cases),
};
