/* SPDX-License-Identifier: Apache-2.0
 *
 * The algorithms that the library names for a product, best first. */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_ALGORITHMS_H
#define ENGINE_KERNELS_CUBLASLT_LIB_ALGORITHMS_H

#include "engine/kernels/cublaslt/lib/product.h"

enum { ALGORITHMS_MAX = 20 };

struct algorithms {
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS_MAX];
    int count;
};

/* At least one, or UNSUPPORTED. */
enum status algorithms_find(const struct device *device, const struct product *product,
                            struct algorithms *algorithms, struct error *why);
/* "algorithm 66 tile 20 stages 36 split 4" */
void algorithm_describe(const cublasLtMatmulAlgo_t *algorithm, char *text, size_t size);

#endif
