/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks of 4 or 8 bits that share a factor (engine/ops/lib/block_codes.h). */
#ifndef ENGINE_KERNELS_CUDA_LIB_CODES_H
#define ENGINE_KERNELS_CUDA_LIB_CODES_H

#include "engine/kernels/cuda/lib/query.h"

extern "C" {
#include "engine/ops/lib/block_codes.h"
}

struct codes {
    const uint8_t *codes, *zeros; /* zeros NULL: there are none */
    const void *scales;
    int type; /* of the scales */
    unsigned bits, rows, k, blocks, row_bytes, zero_bytes;
    unsigned block_shift; /* a block has 2^block_shift elements */
};

static __device__ __forceinline__ unsigned code_at(const uint8_t *row, unsigned k, unsigned bits)
{
    return bits == 8 ? row[k] : row[k / 2] >> 4 * (k & 1) & 15u;
}

/* What is taken from the codes of a block. */
static __device__ __forceinline__ unsigned zero_of_block(const struct codes &c, unsigned row,
                                                         unsigned block)
{
    if (!c.zeros)
        return 1u << (c.bits - 1);
    return code_at(c.zeros + (size_t)row * c.zero_bytes, block, c.bits);
}

static __device__ __forceinline__ float scale_of_block(const struct codes &c, unsigned row,
                                                       unsigned block)
{
    return group_as<1>(c.type, c.scales, (size_t)row * c.blocks + block).v[0];
}

static __device__ __forceinline__ float weight_at(const struct codes &c, unsigned row, unsigned k)
{
    unsigned block = k >> c.block_shift;
    int code = (int)code_at(c.codes + (size_t)row * c.row_bytes, k, c.bits);
    int zero = (int)zero_of_block(c, row, block);
    return (float)(code - zero) * scale_of_block(c, row, block);
}

/* ---- host ---- */

/* rows and k are those that the shapes say; scales is that input. Pointers are left open. */
static inline struct codes codes_of(const struct kernel_query *q, int64_t rows, int64_t k,
                                    int scales)
{
    struct block_codes b =
        block_codes_of(cuda_host->node_int(q->node, "bits", BLOCK_CODES_BITS),
                       cuda_host->node_int(q->node, "block_size", BLOCK_CODES_SIZE), rows, k);
    struct codes c = {};
    c.type = q->in[scales].dtype;
    c.bits = (unsigned)b.bits;
    c.rows = (unsigned)b.rows;
    c.k = (unsigned)b.k;
    c.blocks = (unsigned)b.blocks;
    c.row_bytes = (unsigned)b.row_bytes;
    c.zero_bytes = (unsigned)b.zero_bytes;
    while (1ll << c.block_shift < b.block)
        c.block_shift++;
    return c;
}

#endif
