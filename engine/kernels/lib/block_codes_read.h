/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights in 4 or 8 bits (engine/ops/lib/block_codes.h) as floats. */
#ifndef ENGINE_KERNELS_LIB_BLOCK_CODES_READ_H
#define ENGINE_KERNELS_LIB_BLOCK_CODES_READ_H

#include "engine/kernels/lib/simd_floats.h"
#include "engine/ops/lib/block_codes.h"

/* In memory; zeros NULL: there are none. */
struct block_code_arrays {
    const uint8_t *codes, *zeros;
    const void *scales; /* of f32, or of bf16 */
};

/* The VL codes from k on, a multiple of VL. */
SIMD_INLINE vi codes_load(const uint8_t *row, int64_t k, int bits)
{
    return bits == 8 ? vi_load_u8(row + k, VL) : vi_load_nibbles(row, k);
}

SIMD_INLINE float zero_of_block(const struct block_codes *c, const struct block_code_arrays *in,
                                int64_t row, int64_t block)
{
    if (!in->zeros)
        return (float)c->zero;
    return (float)block_code(in->zeros + row * c->zero_bytes, block, c->bits);
}

/* All elements of a row, those beyond c->k in its last block too. bits, bf16 (of the scales) and
 * to_bf16 are constants. */
SIMD_INLINE void row_of_codes(const struct block_codes *c, const struct block_code_arrays *in,
                              int64_t row, void *to, int bits, bool bf16, bool to_bf16)
{
    const uint8_t *codes = in->codes + row * c->row_bytes;
    for (int64_t block = 0; block < c->blocks; block++) {
        vf scale = vf_set1(float_read(in->scales, row * c->blocks + block, bf16));
        vf zero = vf_set1(zero_of_block(c, in, row, block));
        int64_t first = block * c->block;
        for (int64_t k = first; k < first + c->block; k += VL) {
            vf centred = vf_sub(vf_from_vi(codes_load(codes, k, bits)), zero);
            vf_write(to, k, vf_mul(centred, scale), to_bf16);
        }
    }
}

/* The same of rows of both widths, whose scales and results are alike. */
SIMD_INLINE void row_of_codes_alike(const struct block_codes *c, const struct block_code_arrays *in,
                                    int64_t row, void *to, bool bf16)
{
    if (c->bits == 4)
        row_of_codes(c, in, row, to, 4, bf16, bf16);
    else
        row_of_codes(c, in, row, to, 8, bf16, bf16);
}

#endif
