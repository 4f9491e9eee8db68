/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of outer products: C[row][column] is the sum over k of A[k][row] B[k][column]. So are the
 * gradients of weights: k are pixels or rows of a batch, and both factors lie as the layer had
 * them, rows and columns dense. The sums stay in registers, as in gemm_tile.h, which wants A the
 * other way round.
 */
#ifndef ENGINE_KERNELS_LIB_OUTER_H
#define ENGINE_KERNELS_LIB_OUTER_H

#include <stdbool.h>

#include "engine/kernels/lib/simd.h"

#if defined(__AVX512F__)
enum { OUTER_ROWS_MAX = 6, OUTER_VECTORS_MAX = 4 };
#elif defined(__AVX2__)
enum { OUTER_ROWS_MAX = 6, OUTER_VECTORS_MAX = 2 };
#else
enum { OUTER_ROWS_MAX = 4, OUTER_VECTORS_MAX = 4 };
#endif

/* A tile: 1 to OUTER_ROWS_MAX rows, 1 to OUTER_VECTORS_MAX vectors of columns. */
struct outer {
    const float *a, *b;     /* of its first row and column */
    int64_t a_step, b_step; /* floats from k to k + 1 */
    int64_t k;
    float *c;
    int64_t c_row;
    bool resume; /* c holds the sums of earlier k */
    /* A line from each is prefetched per k: of what later tiles will read. */
    const float *ahead_a, *ahead_b;
    int64_t ahead_a_step, ahead_b_step;
};

#define outer_run SIMD_FN(outer_run)
void outer_run(const struct outer *tile, int rows, int vectors);

#endif
