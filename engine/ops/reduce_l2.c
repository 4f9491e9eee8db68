/* SPDX-License-Identifier: Apache-2.0
 * ReduceL2: the root of the sum of squares. */
#include <math.h>

#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k] * x[k];
    return sqrt(sum);
}

REDUCE_OP(reduce_l2, "ReduceL2", 18, fold, NULL, .elementwise = 2);
