/* SPDX-License-Identifier: Apache-2.0
 * ReduceMin: the smallest element; of none infinity, the most of an integer type, true. */
#include <math.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double least = (double)INFINITY;
    for (int64_t k = 0; k < n; k++)
        least = x[k] < least || isnan(x[k]) ? x[k] : least;
    return least;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    int64_t least = INT64_MAX;
    for (int64_t k = 0; k < n; k++)
        least = x[k] < least ? x[k] : least;
    return least;
}

REDUCE_REGISTER(reduce_min, "ReduceMin", 18, fold, fold_int, REDUCE_FIELDS(.elementwise = 0),
                .gradient = gradient_of_extreme);
