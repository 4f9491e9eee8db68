/* SPDX-License-Identifier: Apache-2.0
 * ReduceProd: the product. */
#include "engine/ops/lib/reduce.h"

static double fold(const double *x, int64_t n)
{
    double product = 1;
    for (int64_t k = 0; k < n; k++)
        product *= x[k];
    return product;
}

static int64_t fold_int(const int64_t *x, int64_t n)
{
    uint64_t product = 1; /* overflow wraps */
    for (int64_t k = 0; k < n; k++)
        product *= (uint64_t)x[k];
    return (int64_t)product;
}

REDUCE_REGISTER(reduce_prod, "ReduceProd", 18, fold, fold_int, REDUCE_FIELDS(.elementwise = 1),
                .no_gradient = "no workload learns through it");
