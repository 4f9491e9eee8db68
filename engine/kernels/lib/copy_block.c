/* SPDX-License-Identifier: Apache-2.0
 * Transposes of blocks. f32: the squares of simd_square.h. */
#include "engine/kernels/lib/copy_block.h"

#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/simd_square.h"

/* From DRAM every source row is read in turn, too briefly for the hardware to run ahead. */
enum { AHEAD_BYTES = 256 };

/* A square that is full: the common case, free of masks. */
SIMD_INLINE void square(const struct copy_block *b, const char *src, char *dst, bool stream)
{
    vf r[VL];
    for (int k = 0; k < VL; k++) {
        r[k] = vf_load((const float *)(const void *)(src + k * b->src_stride));
        if (stream)
            __builtin_prefetch(src + k * b->src_stride + AHEAD_BYTES, 0, 0);
    }
    transpose_square(r);
    for (int k = 0; k < VL; k++) {
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
    vf r[VL];
    vm load = vm_first(nb), store = vm_first(na);
    for (int k = 0; k < VL; k++)
        r[k] = k < na ? vf_load_m((const float *)(const void *)(src + k * b->src_stride), load)
                      : vf_zero();
    transpose_square(r);
    for (int k = 0; k < VL && k < nb; k++)
        vf_store_m((float *)(void *)(dst + k * b->dst_stride), store, r[k]);
}

/* Narrower than a square: masks. */
static void block_narrow(const struct copy_block *b)
{
    for (int64_t i = 0; i < b->na; i += VL)
        for (int64_t j = 0; j < b->nb; j += VL)
            square_edge(b, b->na - i < VL ? b->na - i : VL, b->nb - j < VL ? b->nb - j : VL,
                        b->src + i * b->src_stride + j * 4, b->dst + j * b->dst_stride + i * 4);
}

/* The last square of a row or column is moved back to end at the edge: what it has in common with
 * the one before it is written twice, which is cheaper than a mask. */
static void block_4(const struct copy_block *b, bool stream)
{
    bool aligned = (((uintptr_t)b->dst | (uintptr_t)b->dst_stride) & (VL * 4 - 1)) == 0;
    for (int64_t i = 0; i < b->na; i += VL) {
        int64_t at_a = i + VL <= b->na ? i : b->na - VL;
        bool past = stream && aligned && at_a == i && VL > 1;
        for (int64_t j = 0; j < b->nb; j += VL) {
            int64_t at_b = j + VL <= b->nb ? j : b->nb - VL;
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
    if (elem == 4 && narrow >= VL)
        block_4(b, stream);
    else if (elem == 4 && narrow * 8 >= VL)
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
