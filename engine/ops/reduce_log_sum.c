/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSum: the logarithm of the sum; minus infinity of none. */
#include <math.h>

#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    return n ? log(sum) : (double)-INFINITY;
}

REDUCE_OP(reduce_log_sum, "ReduceLogSum", 18, fold, NULL, .elementwise = 1);
