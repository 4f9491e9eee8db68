/* SPDX-License-Identifier: Apache-2.0
 * ReduceSum: the sum. */
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

REDUCE_OP(reduce_sum, "ReduceSum", 13, fold, fold_int, .elementwise = 1);
