/* SPDX-License-Identifier: Apache-2.0
 * Transposes of blocks. f32: squares of VL x VL in registers (16 x 16 with AVX-512, 8 x 8 with
 * AVX2), by interleaving pairs of rows of ever larger groups. */
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/copy_plan.h"

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

/* A square that is full: the common case, free of masks. */
SIMD_INLINE void square(const struct copy_block *b, const char *src, char *dst, bool stream)
{
    vf r[SIDE];
    for (int k = 0; k < SIDE; k++)
        r[k] = vf_load((const float *)(const void *)(src + k * b->src_stride));
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
static void square_edge(const struct copy_block *b, const char *src, char *dst, int64_t na,
                        int64_t nb)
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

static void block_f32(const struct copy_block *b, bool stream)
{
    bool aligned = (((uintptr_t)b->dst | (uintptr_t)b->dst_stride) & (SIDE * 4 - 1)) == 0;
    stream = stream && aligned && SIDE > 1;
    for (int64_t i = 0; i < b->na; i += SIDE) {
        for (int64_t j = 0; j < b->nb; j += SIDE) {
            const char *src = b->src + i * b->src_stride + j * 4;
            char *dst = b->dst + j * b->dst_stride + i * 4;
            int64_t na = b->na - i < SIDE ? b->na - i : SIDE;
            int64_t nb = b->nb - j < SIDE ? b->nb - j : SIDE;
            if (na < SIDE || nb < SIDE)
                square_edge(b, src, dst, na, nb);
            else if (stream)
                square(b, src, dst, true);
            else
                square(b, src, dst, false);
        }
    }
}

/* Other sizes: the block fits the first cache, so the order of its elements hardly matters. */
#define PLAIN_BLOCK(name, type)                                                                    \
    static void name(const struct copy_block *b)                                                   \
    {                                                                                              \
        for (int64_t j = 0; j < b->nb; j++) {                                                      \
            const char *src = b->src + j * (int64_t)sizeof(type);                                  \
            type *dst = (type *)(void *)(b->dst + j * b->dst_stride);                              \
            for (int64_t i = 0; i < b->na; i++)                                                    \
                dst[i] = *(const type *)(const void *)(src + i * b->src_stride);                   \
        }                                                                                          \
    }
PLAIN_BLOCK(block_1, uint8_t)
PLAIN_BLOCK(block_2, uint16_t)
PLAIN_BLOCK(block_8, uint64_t)

void copy_block(const struct copy_block *block, int elem, bool stream)
{
    switch (elem) {
    case 1:
        block_1(block);
        break;
    case 2:
        block_2(block);
        break;
    case 8:
        block_8(block);
        break;
    default:
        block_f32(block, stream);
        break;
    }
}
