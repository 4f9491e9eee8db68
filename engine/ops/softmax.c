/* SPDX-License-Identifier: Apache-2.0
 * Softmax. flatten = 1 (set by the importer for opsets before 13) joins the axes from `axis` on. */
#include <math.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/family/softmax.h"

static void line(const struct axis *axis, const double *x, double *y)
{
    double largest = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < axis->size; k++)
        largest = fmax(largest, x[k * axis->inner]);
    for (int64_t k = 0; k < axis->size; k++)
        sum += y[k * axis->inner] = exp(x[k * axis->inner] - largest);
    for (int64_t k = 0; k < axis->size; k++)
        y[k * axis->inner] /= sum;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return softmax_reference(call, line, err);
}

/* y (dy - sum y dy) */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int first, end, y = gradient_out(c, 0), part = make_mul(g, y, c->dy[0]);
    softmax_axes(gradient_node(c), gradient_shape(g, y).rank, &first, &end);
    int mean = make_sum_of_lines(g, part, first, end);
    c->dx[0] = make_mul(g, y, make_sub(g, c->dy[0], mean));
    return STATUS_OK;
}

REGISTER(op, softmax) = {
    .name = "Softmax",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .attrs = softmax_attrs,
    .infer = softmax_infer,
    .cost = softmax_cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(softmax_cases),
};
