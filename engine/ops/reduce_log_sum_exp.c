/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSumExp: log sum exp, with the largest element taken out. */
#include <math.h>

#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double most = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, x[k]);
    if (isinf(most))
        return most;
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - most);
    return most + log(sum);
}

REDUCE_OP(reduce_log_sum_exp, "ReduceLogSumExp", 18, fold, NULL, .elementwise = 3,
          .transcendentals = 1);
