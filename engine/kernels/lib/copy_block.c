/* SPDX-License-Identifier: Apache-2.0
 * Transposes of blocks. f32: squares of VL x VL in registers (16 x 16 with AVX-512, 8 x 8 with
 * AVX2), by interleaving pairs of rows of ever larger groups. */
#include "engine/kernels/lib/copy_block.h"

#include "engine/kernels/lib/copy_bytes.h"

#if defined(__AVX512F__)

enum { SIDE = 16 };

SIMD_INLINE void transpose_square(vf r[SIDE])
{
    vf t[SIDE];
    for (int k = 0; k < SIDE; k += 4) { /* 4 x 4 within each quarter of the rows */
        vf a = _mm512_unpacklo_ps(r[k], r[k + 1]), b = _mm512_unpackhi_ps(r[k], r[k + 1]);
        vf c = _mm512_unpacklo_ps(r[k + 2], r[k + 3]), d = _mm512_unpackhi_ps(r[k + 2], r[k + 3]);
        t[k] = _mm512_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int k = 0; k < 4; k++) { /* quarters of rows k, k + 4, k + 8, k + 12 */
        vf a = _mm512_shuffle_f32x4(t[k], t[k + 4], 0x88);
        vf b = _mm512_shuffle_f32x4(t[k], t[k + 4], 0xdd);
        vf c = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0x88);
        vf d = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0xdd);
        r[k] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[k + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[k + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[k + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

#elif defined(__AVX2__)

enum { SIDE = 8 };

SIMD_INLINE void transpose_square(vf r[SIDE])
{
    vf t[SIDE];
    for (int k = 0; k < SIDE; k += 4) {
        vf a = _mm256_unpacklo_ps(r[k], r[k + 1]), b = _mm256_unpackhi_ps(r[k], r[k + 1]);
        vf c = _mm256_unpacklo_ps(r[k + 2], r[k + 3]), d = _mm256_unpackhi_ps(r[k + 2], r[k + 3]);
        t[k] = _mm256_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (int k = 0; k < 4; k++) {
        r[k] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x20);
        r[k + 4] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x31);
    }
}

#else

enum { SIDE = 1 };

SIMD_INLINE void transpose_square(vf r[SIDE])
{
    (void)r;
}

#endif

/* From DRAM every source row is read in turn, too briefly for the hardware to run ahead. */
enum { AHEAD_BYTES = 256 };

/* A square that is full: the common case, free of masks. */
SIMD_INLINE void square(const struct copy_block *b, const char *src, char *dst, bool stream)
{
    vf r[SIDE];
    for (int k = 0; k < SIDE; k++) {
        r[k] = vf_load((const float *)(const void *)(src + k * b->src_stride));
        if (stream)
            __builtin_prefetch(src + k * b->src_stride + AHEAD_BYTES, 0, 0);
    }
    transpose_square(r);
    for (int k = 0; k < SIDE; k++) {
        float *to = (float *)(void *)(dst + k * b->dst_stride);
        if (stream)
            vf_stream(to, r[k]);
        else
            vf_store(to, r[k]);
    }
}

/* na x nb of a square. */
static void square_edge(const struct copy_block *b, int64_t na, int64_t nb, const char *src,
                        char *dst)
{
    vf r[SIDE];
    vm load = vm_first(nb), store = vm_first(na);
    for (int k = 0; k < SIDE; k++)
        r[k] = k < na ? vf_load_m((const float *)(const void *)(src + k * b->src_stride), load)
                      : vf_zero();
    transpose_square(r);
    for (int k = 0; k < SIDE && k < nb; k++)
        vf_store_m((float *)(void *)(dst + k * b->dst_stride), store, r[k]);
}

/* Narrower than a square: masks. */
static void block_narrow(const struct copy_block *b)
{
    for (int64_t i = 0; i < b->na; i += SIDE)
        for (int64_t j = 0; j < b->nb; j += SIDE)
            square_edge(b, b->na - i < SIDE ? b->na - i : SIDE, b->nb - j < SIDE ? b->nb - j : SIDE,
                        b->src + i * b->src_stride + j * 4, b->dst + j * b->dst_stride + i * 4);
}

/* The last square of a row or column is moved back to end at the edge: what it has in common with
 * the one before it is written twice, which is cheaper than a mask. */
static void block_4(const struct copy_block *b, bool stream)
{
    bool aligned = (((uintptr_t)b->dst | (uintptr_t)b->dst_stride) & (SIDE * 4 - 1)) == 0;
    for (int64_t i = 0; i < b->na; i += SIDE) {
        int64_t at_a = i + SIDE <= b->na ? i : b->na - SIDE;
        bool past = stream && aligned && at_a == i && SIDE > 1;
        for (int64_t j = 0; j < b->nb; j += SIDE) {
            int64_t at_b = j + SIDE <= b->nb ? j : b->nb - SIDE;
            const char *src = b->src + at_a * b->src_stride + at_b * 4;
            char *dst = b->dst + at_b * b->dst_stride + at_a * 4;
            if (past)
                square(b, src, dst, true);
            else
                square(b, src, dst, false);
        }
    }
}

/* Elements of 1 and 2 bytes: squares of 16-byte rows. Interleaving the first and the second half of
 * the rows log2(side) times over transposes them (a perfect shuffle). Vector extensions of the
 * compilers, so that it is the same on every architecture. */
#define SMALL_SQUARE(name, type, side, low, high)                                                  \
    typedef type name##_row __attribute__((vector_size(16)));                                      \
    static void name(const struct copy_block *b, const char *src, char *dst)                       \
    {                                                                                              \
        name##_row r[side], t[side];                                                               \
        for (int k = 0; k < (side); k++)                                                           \
            memcpy(&r[k], src + k * b->src_stride, 16);                                            \
        for (int round = 1; round < (side); round *= 2) {                                          \
            for (int k = 0; k < (side) / 2; k++) {                                                 \
                t[2 * k] = __builtin_shufflevector(r[k], r[k + (side) / 2], low);                  \
                t[2 * k + 1] = __builtin_shufflevector(r[k], r[k + (side) / 2], high);             \
            }                                                                                      \
            memcpy(r, t, sizeof(r));                                                               \
        }                                                                                          \
        for (int k = 0; k < (side); k++)                                                           \
            memcpy(dst + k * b->dst_stride, &r[k], 16);                                            \
    }
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
SMALL_SQUARE(square_2, uint16_t, 8, LOW_8, HIGH_8)
SMALL_SQUARE(square_1, uint8_t, 16, LOW_16, HIGH_16)

#define SMALL_BLOCK(name, square, side, bytes)                                                     \
    static void name(const struct copy_block *b)                                                   \
    {                                                                                              \
        for (int64_t i = 0; i < b->na; i += (side)) {                                              \
            int64_t at_a = i + (side) <= b->na ? i : b->na - (side);                               \
            for (int64_t j = 0; j < b->nb; j += (side)) {                                          \
                int64_t at_b = j + (side) <= b->nb ? j : b->nb - (side);                           \
                square(b, b->src + at_a * b->src_stride + at_b * (bytes),                          \
                       b->dst + at_b * b->dst_stride + at_a * (bytes));                            \
            }                                                                                      \
        }                                                                                          \
    }
SMALL_BLOCK(block_2, square_2, 8, 2)
SMALL_BLOCK(block_1, square_1, 16, 1)

/* Anything else, element by element; the longer side is the inner loop. The block fits the first
 * cache, so the order hardly matters. */
#define PLAIN_BLOCK(name, type)                                                                    \
    static void name(const struct copy_block *b)                                                   \
    {                                                                                              \
        bool along_a = b->na >= b->nb;                                                             \
        int64_t outer = along_a ? b->nb : b->na, inner = along_a ? b->na : b->nb;                  \
        int64_t size = (int64_t)sizeof(type);                                                      \
        int64_t src_step = along_a ? b->src_stride : size,                                         \
                dst_step = along_a ? size : b->dst_stride;                                         \
        for (int64_t j = 0; j < outer; j++) {                                                      \
            const char *src = b->src + j * (along_a ? size : b->src_stride);                       \
            char *dst = b->dst + j * (along_a ? b->dst_stride : size);                             \
            for (int64_t i = 0; i < inner; i++)                                                    \
                memcpy(dst + i * dst_step, src + i * src_step, sizeof(type));                      \
        }                                                                                          \
    }
PLAIN_BLOCK(plain_1, uint8_t)
PLAIN_BLOCK(plain_2, uint16_t)
PLAIN_BLOCK(plain_4, uint32_t)
PLAIN_BLOCK(plain_8, uint64_t)

void copy_block(const struct copy_block *b, int elem, bool stream)
{
    int64_t narrow = b->na < b->nb ? b->na : b->nb;
    if (elem == 4 && narrow >= SIDE)
        block_4(b, stream);
    else if (elem == 4 && narrow * 8 >= SIDE)
        block_narrow(b);
    else if (elem == 4)
        plain_4(b);
    else if (elem == 2 && narrow >= 8)
        block_2(b);
    else if (elem == 2)
        plain_2(b);
    else if (elem == 1 && narrow >= 16)
        block_1(b);
    else if (elem == 1)
        plain_1(b);
    else
        plain_8(b);
}
