/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernels of all matrix products: matrix multiplication, convolution, Winograd.
 *
 * A tile is C[rows x columns] += sum over taps t and k of A[t][row][k] * B[t][k][column]. Rows of
 * A are given by pointers, one per row and tap, so that a matrix, a 1x1 convolution with any
 * stride and a KxK convolution (a pointer per pixel and tap, a row of zeros for the padding) are
 * the same code and need no copy. B is packed in panels [taps * k][columns], columns being 1 to
 * GEMM_VECTORS_MAX vectors. The sums start from the bias, or from C when an earlier block of k is
 * there already, and the light steps of the epilogue happen before they leave the registers.
 *
 * What shapes pay: the registers must hold rows * vectors sums, one row of B and one element of A,
 * and each multiply-add must find its operands loaded. Tall tiles (12 x 2) load least on CPUs with
 * one 512-bit load a cycle, wide ones (6 x 4, 8 x 3) win where broadcasts compete for the ports.
 */
#ifndef ENGINE_KERNELS_LIB_GEMM_TILE_H
#define ENGINE_KERNELS_LIB_GEMM_TILE_H

#include <stdbool.h>

#include "engine/kernels/lib/gemm_post.h"
#include "engine/kernels/lib/simd.h"

#if defined(__AVX512F__)
enum { GEMM_ROWS_MAX = 14, GEMM_VECTORS_MAX = 4 };
#elif defined(__AVX2__)
enum { GEMM_ROWS_MAX = 6, GEMM_VECTORS_MAX = 3 };
#else
enum { GEMM_ROWS_MAX = 4, GEMM_VECTORS_MAX = 4 };
#endif

struct gemm_tile {
    const float *const *rows; /* [taps][row_step] */
    int64_t row_step;
    int64_t taps;
    int64_t first, k;   /* k elements per tap, from element `first` of each row on */
    const float *ahead; /* rows * taps * k elements from here on are prefetched */
    const float *b;     /* panel [taps * k][vectors * VL] */
    float *c;           /* rows c_row apart */
    int64_t c_row;
    const float *bias;            /* [vectors * VL]; NULL: zero */
    int64_t last;                 /* columns in the last vector, 1 .. VL */
    bool stream;                  /* past the caches; c and c_row aligned to vectors, last == VL */
    bool resume;                  /* c holds the sums of earlier k */
    const struct gemm_post *post; /* NULL: more k will come */
    const float *const *operands; /* per step of post, for the tile's first element */
};

typedef void gemm_tile_fn(const struct gemm_tile *tile);

/* The largest number of rows for tiles that many vectors wide. */
#define gemm_rows_max SIMD_FN(gemm_rows_max)
int gemm_rows_max(int vectors);
#define gemm_tile_for SIMD_FN(gemm_tile_for)
gemm_tile_fn *gemm_tile_for(int rows, int vectors);

#endif
