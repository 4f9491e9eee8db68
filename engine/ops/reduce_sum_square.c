/* SPDX-License-Identifier: Apache-2.0
 * ReduceSumSquare: the sum of squares. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k] * x[k];
    return sum;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k] * x[k];
    return sum;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    c->dx[0] = make_mul(g, make_scaled(g, dy, 2), x);
    return STATUS_OK;
}

REDUCE_OP(reduce_sum_square, "ReduceSumSquare", 18, fold, fold_int, .elementwise = 2);
