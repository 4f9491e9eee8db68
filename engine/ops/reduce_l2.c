/* SPDX-License-Identifier: Apache-2.0
 * ReduceL2: the root of the sum of squares. */
#include <math.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k] * x[k];
    return sqrt(sum);
}

/* dy x / y; zeros alone have a gradient of zero. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    int norm = make_reshaped_as(g, gradient_out(c, 0), dy);
    c->dx[0] = make_function(g, FN_RELU_SLOPE, make_div(g, make_mul(g, dy, x), norm), norm, 0, 0);
    return STATUS_OK;
}

REDUCE_OP(reduce_l2, "ReduceL2", 18, fold, NULL, .elementwise = 2);
