/* SPDX-License-Identifier: Apache-2.0
 * ReduceMean: the mean; of integers, cut off towards zero. */
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

REDUCE_OP(reduce_mean, "ReduceMean", 18, fold, fold_int, .elementwise = 1);
