/* SPDX-License-Identifier: Apache-2.0
 *
 * One always-inlined body with constant sizes, instantiated for every number of rows and vectors.
 * All loops over rows and vectors unroll fully, so the sums live in registers; `objdump` shows no
 * vector spilled inside the loop over k with gcc 12 and clang 14. */
#include "engine/kernels/lib/gemm_tile.h"

#include "engine/kernels/lib/gemm_steps.h"

SIMD_INLINE void begin(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    if (t->resume) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                acc[m][n] = gemm_load(t->c + m * t->c_row + n * VL, t->last, n, nv);
        return;
    }
    UNROLLED (n, nv) {
        vf start = t->bias ? vf_load(t->bias + n * VL) : vf_zero();
        UNROLLED (m, mr)
            acc[m][n] = start;
    }
}

SIMD_INLINE void multiply(const float *const *a, const float *b, int64_t k, int mr, int nv,
                          gemm_sums acc)
{
    vf row[GEMM_VECTORS_MAX];
    UNROLLED (n, nv)
        row[n] = vf_load(b + n * VL);
    UNROLLED (m, mr) {
        vf x = vf_set1(a[m][k]);
        UNROLLED (n, nv)
            acc[m][n] = vf_fma(x, row[n], acc[m][n]);
    }
}

SIMD_INLINE void sum_up(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    const float *b = t->b, *ahead = t->ahead;
    int64_t count = t->k;
    for (int64_t tap = 0; tap < t->taps; tap++) {
        const float *a[GEMM_ROWS_MAX];
        UNROLLED (m, mr)
            a[m] = t->rows[tap * t->row_step + m] + t->first + count;
        _Pragma("GCC unroll 1") for (int64_t k = -count; k < 0; k++, b += nv * VL, ahead += mr)
        {
            __builtin_prefetch(ahead);
            multiply(a, b, k, mr, nv, acc);
        }
    }
}

SIMD_INLINE void store(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    if (t->stream) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                vf_stream(t->c + m * t->c_row + n * VL, acc[m][n]);
        return;
    }
    if (t->last == VL) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                vf_store(t->c + m * t->c_row + n * VL, acc[m][n]);
        return;
    }
    vm mask = vm_first(t->last);
    UNROLLED (m, mr) {
        UNROLLED (n, nv - 1)
            vf_store(t->c + m * t->c_row + n * VL, acc[m][n]);
        vf_store_m(t->c + m * t->c_row + (nv - 1) * VL, mask, acc[m][nv - 1]);
    }
}

SIMD_INLINE void tile(const struct gemm_tile *t, int mr, int nv)
{
    gemm_sums acc;
    begin(t, mr, nv, acc);
    sum_up(t, mr, nv, acc);
    if (t->post && t->post->light)
        gemm_light_steps(t->post, t->operands, t->last, mr, nv, acc);
    store(t, mr, nv, acc);
    if (t->post && t->post->light < t->post->count)
        gemm_post_heavy(t->post, t->operands, t->c, t->c_row, mr, (nv - 1) * VL + t->last);
}

#define TILE(mr, nv)                                                                               \
    static void tile_##mr##x##nv(const struct gemm_tile *t)                                        \
    {                                                                                              \
        tile(t, mr, nv);                                                                           \
    }
#define TILES_4(nv)  TILE(1, nv) TILE(2, nv) TILE(3, nv) TILE(4, nv)
#define TILES_6(nv)  TILES_4(nv) TILE(5, nv) TILE(6, nv)
#define TILES_9(nv)  TILES_6(nv) TILE(7, nv) TILE(8, nv) TILE(9, nv)
#define TILES_14(nv) TILES_9(nv) TILE(10, nv) TILE(11, nv) TILE(12, nv) TILE(13, nv) TILE(14, nv)
#define ROW_4(nv)    tile_1x##nv, tile_2x##nv, tile_3x##nv, tile_4x##nv
#define ROW_6(nv)    ROW_4(nv), tile_5x##nv, tile_6x##nv
#define ROW_9(nv)    ROW_6(nv), tile_7x##nv, tile_8x##nv, tile_9x##nv
#define ROW_14(nv)   ROW_9(nv), tile_10x##nv, tile_11x##nv, tile_12x##nv, tile_13x##nv, tile_14x##nv

#if defined(__AVX512F__)
TILES_14(1)
TILES_14(2)
TILES_9(3)
TILES_6(4)
static gemm_tile_fn *const tiles[GEMM_VECTORS_MAX][GEMM_ROWS_MAX] = {
    {ROW_14(1)}, {ROW_14(2)}, {ROW_9(3)}, {ROW_6(4)}};
static const int rows_max[GEMM_VECTORS_MAX] = {14, 14, 9, 6};
#elif defined(__AVX2__)
TILES_6(1)
TILES_6(2)
TILES_4(3)
static gemm_tile_fn *const tiles[GEMM_VECTORS_MAX][GEMM_ROWS_MAX] = {
    {ROW_6(1)}, {ROW_6(2)}, {ROW_4(3)}};
static const int rows_max[GEMM_VECTORS_MAX] = {6, 6, 4};
#else
TILES_4(1)
TILES_4(2)
TILES_4(3)
TILES_4(4)
static gemm_tile_fn *const tiles[GEMM_VECTORS_MAX][GEMM_ROWS_MAX] = {
    {ROW_4(1)}, {ROW_4(2)}, {ROW_4(3)}, {ROW_4(4)}};
static const int rows_max[GEMM_VECTORS_MAX] = {4, 4, 4, 4};
#endif

int gemm_rows_max(int vectors)
{
    return rows_max[vectors - 1];
}

gemm_tile_fn *gemm_tile_for(int rows, int vectors)
{
    return tiles[vectors - 1][rows - 1];
}
