/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSum: the logarithm of the sum; minus infinity of none. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    return n ? log(sum) : (double)-INFINITY;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), dy;
    TRY(gradient_kept(c, &dy, err));
    if (dy == NONE)
        return STATUS_OK;
    struct shape shape = gradient_shape(g, x);
    int sum = make_unary(g, &op_exp, make_reshaped_as(g, gradient_out(c, 0), dy));
    c->dx[0] = make_expanded(g, make_div(g, dy, sum), &shape);
    return STATUS_OK;
}

REDUCE_OP(reduce_log_sum, "ReduceLogSum", 18, fold, NULL, .elementwise = 1);
