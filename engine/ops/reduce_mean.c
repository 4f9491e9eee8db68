/* SPDX-License-Identifier: Apache-2.0
 * ReduceMean: the mean; of integers, cut off towards zero. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    return sum / (double)n;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    return n ? sum / n : 0;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    struct shape shape = gradient_shape(g, x), kept = gradient_shape(g, dy);
    int64_t left = shape_count(&kept), count = left ? shape_count(&shape) / left : 1;
    c->dx[0] = make_expanded(g, make_share(g, dy, count ? count : 1), &shape);
    return STATUS_OK;
}

REDUCE_OP(reduce_mean, "ReduceMean", 18, fold, fold_int, .elementwise = 1);
