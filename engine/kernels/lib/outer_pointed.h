/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of outer products (outer.h) whose rows of B are given one by one. Rows that lie far apart
 * fight for the same places of the first cache, so tiles are tall: 12 rows by 2 vectors touch 3.5
 * lines of A and B for 24 multiply-adds, 6 by 4 would touch 5.3, and lines are prefetched into the
 * second cache only. They need 32 vector registers: with 16 they are slower than outer.h.
 */
#ifndef ENGINE_KERNELS_LIB_OUTER_POINTED_H
#define ENGINE_KERNELS_LIB_OUTER_POINTED_H

#include <stdbool.h>

#include "engine/kernels/lib/simd.h"

enum { POINTED_ROWS = 12, POINTED_VECTORS = 2 };

/* C[row][column] is the sum over k of A[k][row] B[k][column]; 1 to POINTED_ROWS rows, 1 to
 * POINTED_VECTORS vectors of columns. */
struct outer_pointed {
    const float *a; /* of its first row */
    int64_t a_step; /* floats from k to k + 1 */
    const float *const *b;
    int64_t b_column; /* the k-th row of B begins at b[k] + b_column */
    int64_t k;
    float *c;
    int64_t c_row;
    bool resume; /* c holds the sums of earlier k */
    /* A line from each is prefetched per k: of what later tiles will read. */
    const float *ahead_a;
    int64_t ahead_a_step;
    const float *const *ahead_b;
    int64_t ahead_b_column;
};

#define outer_run_pointed SIMD_FN(outer_run_pointed)
void outer_run_pointed(const struct outer_pointed *tile, int rows, int vectors);

#endif
