/* SPDX-License-Identifier: Apache-2.0
 * ReduceSum: the sum. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    return sum;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    uint64_t sum = 0; /* overflow wraps */
    for (int64_t k = 0; k < n; k++)
        sum += (uint64_t)x[k];
    return (int64_t)sum;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    struct shape shape = gradient_shape(g, x);
    c->dx[0] = make_expanded(g, dy, &shape);
    return STATUS_OK;
}

REDUCE_OP(reduce_sum, "ReduceSum", 13, fold, fold_int, .elementwise = 1);
