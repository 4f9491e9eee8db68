/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSumExp: log sum exp, with the largest element taken out; NaN where there is one. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double largest = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        largest = x[k] > largest || isnan(x[k]) ? x[k] : largest;
    if (isinf(largest))
        return largest;
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - largest);
    return largest + log(sum);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    int y = make_reshaped_as(g, gradient_out(c, 0), dy);
    c->dx[0] = make_mul(g, dy, make_unary(g, &op_exp, make_sub(g, x, y)));
    return STATUS_OK;
}

REDUCE_OP(reduce_log_sum_exp, "ReduceLogSumExp", 18, fold, NULL, .elementwise = 3,
          .transcendentals = 1);
