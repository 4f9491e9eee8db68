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
enum { OUTER_ROWS_MAX = 6, OUTER_VECTORS_MAX = 4, OUTER_TALL_ROWS = 12, OUTER_TALL_VECTORS = 2 };
#elif defined(__AVX2__)
enum { OUTER_ROWS_MAX = 6, OUTER_VECTORS_MAX = 2, OUTER_TALL_ROWS = 6, OUTER_TALL_VECTORS = 2 };
#else
enum { OUTER_ROWS_MAX = 4, OUTER_VECTORS_MAX = 4, OUTER_TALL_ROWS = 4, OUTER_TALL_VECTORS = 4 };
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

/* Rows of B given one by one: its k-th from b_rows[k] + b_column on, and what is prefetched instead
 * of ahead_b from ahead_rows[k] + ahead_column on; b, b_step, ahead_b and ahead_b_step of the tile
 * are not read. Rows that are given like this lie far apart and fight for the same places of the
 * first cache, so tiles are tall, 1 to OUTER_TALL_ROWS by 1 to OUTER_TALL_VECTORS: they touch 3.5
 * lines per k instead of the 5.3 of wide ones, and prefetch into the second cache. */
struct outer_pointed {
    struct outer tile;
    const float *const *b_rows, *const *ahead_rows;
    int64_t b_column, ahead_column;
};

#define outer_run_pointed SIMD_FN(outer_run_pointed)
void outer_run_pointed(const struct outer_pointed *p, int rows, int vectors);

#endif
