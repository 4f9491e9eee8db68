/* SPDX-License-Identifier: Apache-2.0
 *
 * One always-inlined body with constant sizes, instantiated for every number of rows and vectors.
 * All loops over rows and vectors unroll fully, so the sums live in registers; `objdump` shows no
 * vector spilled inside the loop over k with gcc 12 and clang 14. */
#include "engine/kernels/lib/gemm_tile.h"

#define UNROLL _Pragma("GCC unroll 16")

typedef vf sums[GEMM_ROWS_MAX][GEMM_VECTORS_MAX];

/* The columns of vector n that exist: all but in the last vector. */
SIMD_INLINE vf load_columns(const float *p, const struct gemm_tile *t, int n, int nv)
{
    return n < nv - 1 || t->last == VL ? vf_load(p) : vf_load_m(p, vm_first(t->last));
}

SIMD_INLINE void begin(const struct gemm_tile *t, int mr, int nv, sums acc)
{
    if (t->resume) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                acc[m][n] = load_columns(t->c + m * t->c_row + n * VL, t, n, nv);
        return;
    }
    UNROLL for (int n = 0; n < nv; n++) {
        vf start = t->bias ? vf_load(t->bias + n * VL) : vf_zero();
        UNROLL for (int m = 0; m < mr; m++)
            acc[m][n] = start;
    }
}

SIMD_INLINE void multiply(const float *const *a, const float *b, int64_t k, int mr, int nv,
                          sums acc)
{
    vf row[GEMM_VECTORS_MAX];
    UNROLL for (int n = 0; n < nv; n++)
        row[n] = vf_load(b + n * VL);
    UNROLL for (int m = 0; m < mr; m++) {
        vf x = vf_set1(a[m][k]);
        UNROLL for (int n = 0; n < nv; n++)
            acc[m][n] = vf_fma(x, row[n], acc[m][n]);
    }
}

SIMD_INLINE void sum_up(const struct gemm_tile *t, int mr, int nv, sums acc)
{
    const float *b = t->b;
    int64_t count = t->k;
    for (int64_t tap = 0; tap < t->taps; tap++) {
        const float *a[GEMM_ROWS_MAX];
        UNROLL for (int m = 0; m < mr; m++)
            a[m] = t->rows[tap * t->row_step + m] + t->first + count;
        _Pragma("GCC unroll 1") for (int64_t k = -count; k < 0; k++, b += nv * VL)
            multiply(a, b, k, mr, nv, acc);
    }
}

SIMD_INLINE void add_step(const struct gemm_step *s, const float *operand,
                          const struct gemm_tile *t, int mr, int nv, sums acc)
{
    vf scale = vf_set1(s->a);
    if (s->column == 0) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                acc[m][n] = vf_fma(scale, vf_set1(operand[m * s->row]), acc[m][n]);
        return;
    }
    UNROLL for (int m = 0; m < mr; m++)
        UNROLL for (int n = 0; n < nv; n++)
            acc[m][n] = vf_fma(scale, load_columns(operand + m * s->row + n * VL, t, n, nv),
                               acc[m][n]);
}

SIMD_INLINE void mul_step(const struct gemm_step *s, const float *operand,
                          const struct gemm_tile *t, int mr, int nv, sums acc)
{
    if (s->column == 0) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                acc[m][n] = vf_mul(vf_set1(operand[m * s->row]), acc[m][n]);
        return;
    }
    UNROLL for (int m = 0; m < mr; m++)
        UNROLL for (int n = 0; n < nv; n++)
            acc[m][n] = vf_mul(load_columns(operand + m * s->row + n * VL, t, n, nv), acc[m][n]);
}

SIMD_INLINE void bend_step(const struct gemm_step *s, int mr, int nv, sums acc)
{
    vf a = vf_set1(s->a), b = vf_set1(s->b);
    if (s->kind == GEMM_RELU) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                acc[m][n] = vf_max(vf_zero(), acc[m][n]);
        return;
    }
    if (s->kind == GEMM_CLAMP) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                acc[m][n] = vf_min(b, vf_max(a, acc[m][n]));
        return;
    }
    UNROLL for (int m = 0; m < mr; m++)
        UNROLL for (int n = 0; n < nv; n++)
            acc[m][n] = vf_select(vf_lt(acc[m][n], vf_zero()), vf_mul(a, acc[m][n]), acc[m][n]);
}

SIMD_INLINE void finish(const struct gemm_tile *t, int mr, int nv, sums acc)
{
    for (int k = 0; k < t->post->light; k++) {
        const struct gemm_step *step = &t->post->steps[k];
        if (step->kind == GEMM_ADD)
            add_step(step, t->operands[k], t, mr, nv, acc);
        else if (step->kind == GEMM_MUL)
            mul_step(step, t->operands[k], t, mr, nv, acc);
        else
            bend_step(step, mr, nv, acc);
    }
}

SIMD_INLINE void store(const struct gemm_tile *t, int mr, int nv, sums acc)
{
    if (t->stream) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                vf_stream(t->c + m * t->c_row + n * VL, acc[m][n]);
        return;
    }
    if (t->last == VL) {
        UNROLL for (int m = 0; m < mr; m++)
            UNROLL for (int n = 0; n < nv; n++)
                vf_store(t->c + m * t->c_row + n * VL, acc[m][n]);
        return;
    }
    vm mask = vm_first(t->last);
    UNROLL for (int m = 0; m < mr; m++) {
        UNROLL for (int n = 0; n < nv - 1; n++)
            vf_store(t->c + m * t->c_row + n * VL, acc[m][n]);
        vf_store_m(t->c + m * t->c_row + (nv - 1) * VL, mask, acc[m][nv - 1]);
    }
}

SIMD_INLINE void tile(const struct gemm_tile *t, int mr, int nv)
{
    sums acc;
    begin(t, mr, nv, acc);
    sum_up(t, mr, nv, acc);
    if (t->post && t->post->light)
        finish(t, mr, nv, acc);
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
