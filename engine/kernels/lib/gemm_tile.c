/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_body.h"

TILES(F32)
static gemm_tiles tiles_f32 = GEMM_TILES(F32);

#if defined(__AVX512F__)
static gemm_tiles *const tiles[GEMM_MATH_COUNT] = {
    &tiles_f32, &gemm_tiles_bf16, &gemm_tiles_bf16_dot, &gemm_tiles_bytes, &gemm_tiles_bytes_dot};
static const int rows_max[GEMM_VECTORS_MAX] = {14, 14, 9, 6};
#elif defined(__AVX2__)
static gemm_tiles *const tiles[GEMM_MATH_COUNT] = {[GEMM_F32] = &tiles_f32,
                                                   [GEMM_BF16] = &gemm_tiles_bf16,
                                                   [GEMM_BYTES] = &gemm_tiles_bytes,
                                                   [GEMM_BYTES_DOT] = &gemm_tiles_bytes_dot};
static const int rows_max[GEMM_VECTORS_MAX] = {6, 6, 4};
#else
static gemm_tiles *const tiles[GEMM_MATH_COUNT] = {
    [GEMM_F32] = &tiles_f32, [GEMM_BF16] = &gemm_tiles_bf16, [GEMM_BYTES] = &gemm_tiles_bytes};
static const int rows_max[GEMM_VECTORS_MAX] = {4, 4, 4, 4};
#endif

int gemm_rows_max(int vectors)
{
    return rows_max[vectors - 1];
}

gemm_tile_fn *gemm_tile_for(enum gemm_math math, int rows, int vectors)
{
    return (*tiles[math])[vectors - 1][rows - 1];
}
