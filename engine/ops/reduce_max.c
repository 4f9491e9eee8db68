/* SPDX-License-Identifier: Apache-2.0
 * ReduceMax: the largest element; of none minus infinity, the least of an integer type, false. */
#include <math.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double largest = (double)-INFINITY;
    for (int64_t k = 0; k < n; k++)
        largest = x[k] > largest || isnan(x[k]) ? x[k] : largest;
    return largest;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    int64_t largest = INT64_MIN;
    for (int64_t k = 0; k < n; k++)
        largest = x[k] > largest ? x[k] : largest;
    return largest;
}

REDUCE_REGISTER(reduce_max, "ReduceMax", 18, fold, fold_int, REDUCE_FIELDS(.elementwise = 0),
                .gradient = gradient_of_extreme);
