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
 *
 * An element of A and B is a word of 32 bits: a float, two bf16 (sums are floats) or four bytes
 * (unsigned times signed, sums are i32), see enum gemm_math. Everything but the multiplication is
 * the same for all: floats are words here, and only their bits are moved where they are none.
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

enum gemm_math {
    GEMM_F32,
    GEMM_BF16,      /* each half widened to a float */
    GEMM_BF16_DOT,  /* AVX512-BF16 */
    GEMM_BYTES,     /* each byte widened to 16 bits */
    GEMM_BYTES_DOT, /* AVX512-VNNI, AVX-VNNI */
    GEMM_MATH_COUNT,
};

/* What becomes of whole sums of bytes: sum times scale plus offset, clamped, as a float; or rounded
 * and moved by `zero` to a byte of C, which low and high make sure to hold it. */
struct gemm_rescale {
    const float *scale, *offset; /* per column, padded like a bias */
    float low, high;
    int32_t zero;
};

struct gemm_tile {
    const float *const *rows; /* [taps][row_step] */
    int64_t row_step;
    int64_t taps;
    int64_t first, k;   /* k elements per tap, from element `first` of each row on */
    const float *ahead; /* rows * taps * k elements from here on are prefetched */
    const float *b;     /* panel [taps * k][vectors * VL] */
    float *c;           /* rows c_row apart */
    int64_t c_row;
    void *narrow; /* the sums end here as bf16 or bytes, rows narrow_row apart; NULL: in c */
    int64_t narrow_row;
    const struct gemm_rescale *rescale; /* of bytes, for the tile's first column; NULL: no more */
    const float *bias;                  /* [vectors * VL]; NULL: zero. Bytes: i32, see scale */
    /* Bytes, when there is a bias: sums start from scale[row] bias[column], scale NULL being 1,
     * plus, if there is a shift, shift[row] shift_by[column]. */
    const int32_t *scale, *shift, *shift_by;
    int64_t last;                 /* columns in the last vector, 1 .. VL */
    bool stream;                  /* past the caches; c and c_row aligned to vectors, last == VL */
    bool resume;                  /* c holds the sums of earlier k */
    const struct gemm_post *post; /* NULL: more k will come */
    const float *const *operands; /* per step of post, for the tile's first element */
};

typedef void gemm_tile_fn(const struct gemm_tile *tile);

/* The tiles of one kind of words: [vectors - 1][rows - 1]. */
typedef gemm_tile_fn *const gemm_tiles[GEMM_VECTORS_MAX][GEMM_ROWS_MAX];

#define gemm_tiles_bf16      SIMD_FN(gemm_tiles_bf16)
#define gemm_tiles_bytes     SIMD_FN(gemm_tiles_bytes)
#define gemm_tiles_bf16_dot  SIMD_FN(gemm_tiles_bf16_dot)
#define gemm_tiles_bytes_dot SIMD_FN(gemm_tiles_bytes_dot)
extern gemm_tiles gemm_tiles_bf16, gemm_tiles_bytes;
extern gemm_tiles gemm_tiles_bf16_dot;  /* AVX-512 */
extern gemm_tiles gemm_tiles_bytes_dot; /* AVX2, AVX-512 */

/* The largest number of rows for tiles that many vectors wide. */
#define gemm_rows_max SIMD_FN(gemm_rows_max)
int gemm_rows_max(int vectors);
#define gemm_tile_for SIMD_FN(gemm_tile_for)
gemm_tile_fn *gemm_tile_for(enum gemm_math math, int rows, int vectors);

#endif
