/* SPDX-License-Identifier: Apache-2.0
 *
 * One always-inlined body with constant sizes, instantiated for every number of rows and vectors
 * and every kind of words. All loops over rows and vectors unroll fully, so the sums live in
 * registers; `objdump` shows no vector spilled inside the loop over k with gcc 12 and clang 14. */
#ifndef ENGINE_KERNELS_LIB_GEMM_BODY_H
#define ENGINE_KERNELS_LIB_GEMM_BODY_H

#include "engine/kernels/lib/gemm_steps.h"
#include "engine/kernels/lib/simd_dot.h"

#if defined(__AVX512F__)

SIMD_INLINE vf gemm_dot_bf16(vf sum, vf a, vf b)
{
    return vf_dot_bf16(sum, a, b);
}

SIMD_INLINE void gemm_put_bf16_one(uint16_t *to, vf sum)
{
    vf_store_bf16_one(to, sum);
}

#else

/* There is no table of them here: never called. */
#define gemm_dot_bf16(sum, a, b)   (sum)
#define gemm_put_bf16_one(to, sum) ((void)(to), (void)(sum))

#endif

#if defined(__AVX2__)

SIMD_INLINE vf gemm_dot_bytes(vf sum, vf a, vf b)
{
    return vf_bits(vi_dot_bytes(vi_bits(sum), vi_bits(a), vi_bits(b)));
}

#else

#define gemm_dot_bytes(sum, a, b) (sum)

#endif

SIMD_INLINE bool gemm_is_bytes(enum gemm_math math)
{
    return math == GEMM_BYTES || math == GEMM_BYTES_DOT;
}

/* Bytes: what zero points other than 0 add to a product. */
SIMD_INLINE vf gemm_correction(const struct gemm_tile *t, int m, int n)
{
    const int32_t *columns = (const int32_t *)(const void *)t->bias;
    vi sum = vi_load(columns + n * VL);
    if (t->scale)
        sum = vi_mul(vi_set1(t->scale[m]), sum);
    if (t->shift)
        sum = vi_add(sum, vi_mul(vi_set1(t->shift[m]), vi_load(t->shift_by + n * VL)));
    return vf_bits(sum);
}

SIMD_INLINE void gemm_begin(const struct gemm_tile *t, enum gemm_math math, int mr, int nv,
                            gemm_sums acc)
{
    if (t->resume) {
        const float *c = t->c;
        UNROLLED (m, mr) {
            UNROLLED (n, nv)
                acc[m][n] = gemm_is_bytes(math) ? gemm_load(c + n * VL, t->last, n, nv) : vf_zero();
            c += t->c_row;
        }
        return;
    }
    if (gemm_is_bytes(math) && t->bias) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                acc[m][n] = gemm_correction(t, m, n);
        return;
    }
    UNROLLED (n, nv) {
        vf start = t->bias ? vf_load(t->bias + n * VL) : vf_zero();
        UNROLLED (m, mr)
            acc[m][n] = start;
    }
}

/* Words are multiplied whole or in two halves: the registers hold one half at a time. */
SIMD_INLINE vf gemm_part(enum gemm_math math, vf word, int half, bool is_b)
{
    if (math == GEMM_BF16)
        return word_bf16(word, half);
    if (math == GEMM_BYTES)
        return vf_bits(is_b ? word_signed(vi_bits(word), half)
                            : word_unsigned(vi_bits(word), half));
    return word;
}

SIMD_INLINE vf gemm_dot(enum gemm_math math, vf sum, vf a, vf b)
{
    switch (math) {
    case GEMM_BYTES:
        return vf_bits(vi_dot_shorts(vi_bits(sum), vi_bits(a), vi_bits(b)));
    case GEMM_BF16_DOT:
        return gemm_dot_bf16(sum, a, b);
    case GEMM_BYTES_DOT:
        return gemm_dot_bytes(sum, a, b);
    default:
        return vf_fma(a, b, sum);
    }
}

/* A word of A. What is no float may lie anywhere: pixels of three channels. */
SIMD_INLINE float gemm_word(enum gemm_math math, const float *word)
{
    float x;
    if (math == GEMM_F32)
        return *word;
    memcpy(&x, word, sizeof(x));
    return x;
}

SIMD_INLINE void gemm_multiply(enum gemm_math math, const float *const *a, const float *b,
                               int64_t k, int mr, int nv, gemm_sums acc)
{
    int halves = math == GEMM_BF16 || math == GEMM_BYTES ? 2 : 1;
    UNROLLED (half, halves) {
        vf row[GEMM_VECTORS_MAX];
        UNROLLED (n, nv)
            row[n] = gemm_part(math, vf_load(b + n * VL), half, true);
        UNROLLED (m, mr) {
            vf x = gemm_part(math, vf_set1(gemm_word(math, a[m] + k)), half, false);
            UNROLLED (n, nv)
                acc[m][n] = gemm_dot(math, acc[m][n], x, row[n]);
        }
    }
}

SIMD_INLINE void gemm_sum_up(const struct gemm_tile *t, enum gemm_math math, int mr, int nv,
                             gemm_sums acc)
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
            gemm_multiply(math, a, b, k, mr, nv, acc);
        }
    }
}

/* Floats: blocks of depth are summed apart, because the error of a sum grows with its length. */
SIMD_INLINE void gemm_add_earlier(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    const float *c = t->c;
    UNROLLED (m, mr) {
        UNROLLED (n, nv)
            acc[m][n] = vf_add(acc[m][n], gemm_load(c + n * VL, t->last, n, nv));
        c += t->c_row;
    }
}

/* A vector as bf16; one: in an instruction that the CPU has. */
SIMD_INLINE void gemm_put_bf16(uint16_t *to, vf sum, bool one)
{
    if (one)
        gemm_put_bf16_one(to, sum);
    else
        vf_store_bf16(to, sum);
}

SIMD_INLINE void gemm_store_narrow(const struct gemm_tile *t, bool one, int mr, int nv,
                                   gemm_sums acc)
{
    uint16_t *to = t->narrow;
    UNROLLED (m, mr) {
        UNROLLED (n, nv)
            gemm_put_bf16(to + n * VL, acc[m][n], one);
        to += t->narrow_row;
    }
}

/* Steps that need memory, and columns that do not fill the last vector: by way of the first cache,
 * in code that all tiles share. */
SIMD_INLINE void gemm_finish_narrow(const struct gemm_tile *t, bool heavy, int mr, int nv,
                                    gemm_sums acc)
{
    _Alignas(ALIGN_TENSOR) float sums[GEMM_ROWS_MAX * GEMM_VECTORS_MAX * VL];
    const int64_t row = nv * VL, columns = (nv - 1) * VL + t->last;
    UNROLLED (m, mr)
        UNROLLED (n, nv)
            vf_store(sums + m * row + n * VL, acc[m][n]);
    if (heavy)
        gemm_post_heavy(t->post, t->operands, sums, row, mr, columns);
    gemm_round_rows(sums, row, t->narrow, t->narrow_row, mr, columns);
}

SIMD_INLINE void gemm_store(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    float *c = t->c;
    if (t->stream) {
        UNROLLED (m, mr) {
            UNROLLED (n, nv)
                vf_stream(c + n * VL, acc[m][n]);
            c += t->c_row;
        }
        return;
    }
    if (t->last == VL) {
        UNROLLED (m, mr) {
            UNROLLED (n, nv)
                vf_store(c + n * VL, acc[m][n]);
            c += t->c_row;
        }
        return;
    }
    vm mask = vm_first(t->last);
    UNROLLED (m, mr) {
        UNROLLED (n, nv - 1)
            vf_store(c + n * VL, acc[m][n]);
        vf_store_m(c + (nv - 1) * VL, mask, acc[m][nv - 1]);
        c += t->c_row;
    }
}

/* Sums of bytes to floats. */
SIMD_INLINE void gemm_rescale_sums(const struct gemm_rescale *r, int mr, int nv, gemm_sums acc)
{
    vf low = vf_set1(r->low), high = vf_set1(r->high);
    UNROLLED (n, nv) {
        vf scale = vf_load(r->scale + n * VL), offset = vf_load(r->offset + n * VL);
        UNROLLED (m, mr) {
            vf y = vf_add(vf_mul(vf_from_vi(vi_bits(acc[m][n])), scale), offset);
            acc[m][n] = vf_min(vf_max(y, low), high);
        }
    }
}

SIMD_INLINE void gemm_store_bytes(const struct gemm_tile *t, int mr, int nv, gemm_sums acc)
{
    vi zero = vi_set1(t->rescale->zero);
    uint8_t *to = t->narrow;
    UNROLLED (m, mr) {
        UNROLLED (n, nv)
            vi_store_bytes(to + n * VL, n < nv - 1 ? VL : t->last,
                           vi_add(vi_from_vf(acc[m][n]), zero));
        to += t->narrow_row;
    }
}

SIMD_INLINE void gemm_tile_run(const struct gemm_tile *t, enum gemm_math math, int mr, int nv)
{
    gemm_sums acc;
    gemm_begin(t, math, mr, nv, acc);
    gemm_sum_up(t, math, mr, nv, acc);
    bool bytes = gemm_is_bytes(math), is_float = !bytes, steps = t->post;
    bool bf16 = math == GEMM_BF16 || math == GEMM_BF16_DOT;
    if (bytes && t->rescale)
        gemm_rescale_sums(t->rescale, mr, nv, acc);
    if (bytes && t->narrow) {
        gemm_store_bytes(t, mr, nv, acc);
        return;
    }
    if (is_float && t->resume)
        gemm_add_earlier(t, mr, nv, acc);
    if (!bytes && steps && t->post->light)
        gemm_light_steps(t->post, t->operands, bf16, t->last, mr, nv, acc);
    bool heavy = steps && t->post->light < t->post->count;
    if (bf16 && t->narrow) {
        if (heavy || t->last < VL)
            gemm_finish_narrow(t, heavy, mr, nv, acc);
        else
            gemm_store_narrow(t, math == GEMM_BF16_DOT, mr, nv, acc);
        return;
    }
    gemm_store(t, mr, nv, acc);
    if (heavy)
        gemm_post_heavy(t->post, t->operands, t->c, t->c_row, mr, (nv - 1) * VL + t->last);
}

/* TILES_r(math, nv) defines tiles of 1 to r rows, ROW_r(math, nv) lists them. */
#define TILE(math, mr, nv)                                                                         \
    static void tile_##math##_##mr##x##nv(const struct gemm_tile *t)                               \
    {                                                                                              \
        gemm_tile_run(t, GEMM_##math, mr, nv);                                                     \
    }
#define TILES_4(math, nv) TILE(math, 1, nv) TILE(math, 2, nv) TILE(math, 3, nv) TILE(math, 4, nv)
#define TILES_6(math, nv) TILES_4(math, nv) TILE(math, 5, nv) TILE(math, 6, nv)
#define TILES_9(math, nv) TILES_6(math, nv) TILE(math, 7, nv) TILE(math, 8, nv) TILE(math, 9, nv)
#define TILES_14(math, nv)                                                                         \
    TILES_9(math, nv)                                                                              \
    TILE(math, 10, nv) TILE(math, 11, nv) TILE(math, 12, nv) TILE(math, 13, nv) TILE(math, 14, nv)
#define ROW_4(math, nv)                                                                            \
    tile_##math##_1x##nv, tile_##math##_2x##nv, tile_##math##_3x##nv, tile_##math##_4x##nv
#define ROW_6(math, nv) ROW_4(math, nv), tile_##math##_5x##nv, tile_##math##_6x##nv
#define ROW_9(math, nv)                                                                            \
    ROW_6(math, nv), tile_##math##_7x##nv, tile_##math##_8x##nv, tile_##math##_9x##nv
#define ROW_14(math, nv)                                                                           \
    ROW_9(math, nv), tile_##math##_10x##nv, tile_##math##_11x##nv, tile_##math##_12x##nv,          \
        tile_##math##_13x##nv, tile_##math##_14x##nv

/* TILES(math) defines all tiles of the instruction set and GEMM_TILES(math) lists them; FEW those
 * of two vectors at most, the others being NULL: all that word_tunings.c takes of words in parts.
 */
#if defined(__AVX512F__)
#define FEW(math) TILES_14(math, 1) TILES_14(math, 2)
#define GEMM_FEW(math)                                                                             \
    {                                                                                              \
        {ROW_14(math, 1)},                                                                         \
        {                                                                                          \
            ROW_14(math, 2)                                                                        \
        }                                                                                          \
    }
#define TILES(math) TILES_14(math, 1) TILES_14(math, 2) TILES_9(math, 3) TILES_6(math, 4)
#define GEMM_TILES(math)                                                                           \
    {                                                                                              \
        {ROW_14(math, 1)}, {ROW_14(math, 2)}, {ROW_9(math, 3)},                                    \
        {                                                                                          \
            ROW_6(math, 4)                                                                         \
        }                                                                                          \
    }
#elif defined(__AVX2__)
#define FEW         TILES
#define GEMM_FEW    GEMM_TILES
#define TILES(math) TILES_6(math, 1) TILES_6(math, 2) TILES_4(math, 3)
#define GEMM_TILES(math)                                                                           \
    {                                                                                              \
        {ROW_6(math, 1)}, {ROW_6(math, 2)},                                                        \
        {                                                                                          \
            ROW_4(math, 3)                                                                         \
        }                                                                                          \
    }
#else
#define FEW         TILES
#define GEMM_FEW    GEMM_TILES
#define TILES(math) TILES_4(math, 1) TILES_4(math, 2) TILES_4(math, 3) TILES_4(math, 4)
#define GEMM_TILES(math)                                                                           \
    {                                                                                              \
        {ROW_4(math, 1)}, {ROW_4(math, 2)}, {ROW_4(math, 3)},                                      \
        {                                                                                          \
            ROW_4(math, 4)                                                                         \
        }                                                                                          \
    }
#endif

#endif
