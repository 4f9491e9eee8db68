/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's part of a product on tensor cores: eight warps, two by four, have the results of a
 * square of 32 `each` a side in registers, and multiply what lib/mma_stage.h brings. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MMA_TILE_H
#define ENGINE_KERNELS_CUDA_LIB_MMA_TILE_H

#include "engine/kernels/cuda/lib/mma_stage.h"

/* ---- multiplying ---- */

/* Where a lane finds what it multiplies, in bytes from the beginning of the stage: of the left
 * factor by step; of the right one by step if it lies along the depth, else by 16 columns. */
struct mma_places {
    unsigned a[MMA_STEPS], b[2];
};

template <class element, bool across, int each>
static __device__ __forceinline__ struct mma_places mma_places_of(void)
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, right = MMA_SIDE * each;
    unsigned row = warp / MMA_WARPS_ACROSS * (MMA_ROWS * each) + lane % 16;
    unsigned column = warp % MMA_WARPS_ACROSS * (MMA_COLUMNS * each);
    struct mma_places p;
#pragma unroll
    for (unsigned k = 0; k < 2; k++) {
        unsigned chunk = (column + k * 16) / 8 + lane / 16,
                 line = column + lane % 8 + lane / 16 * 8;
        p.a[k] = mma_along_at(row, k * 2 + lane / 16) * MMA_CHUNK;
        p.b[k] = across ? mma_across_at<element>(lane % 16, chunk, right / 8)
                        : mma_along_at(line, k * 2 + lane / 8 % 2);
        p.b[k] = (p.b[k] + right * MMA_LINE_CHUNKS) * MMA_CHUNK;
        KEEP(p.a[k]);
        KEEP(p.b[k]);
    }
    return p;
}

/* tf32 across the depth, which ldmatrix does not turn. */
template <int each>
static __device__ __forceinline__ void mma_load_words(const uint4 *right, unsigned column,
                                                      unsigned step, unsigned b[4])
{
    unsigned lane = threadIdx.x % WARP, chunks = MMA_SIDE * each / 4;
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        unsigned row = step * 8 + lane % 4 + k % 2 * 4, at = column + k / 2 * 8 + lane / 4;
        const uint4 *chunk = right + mma_across_at<float>(row, at / 4, chunks);
        b[k] = ((const unsigned *)chunk)[at % 4];
    }
}

/* Of 16 columns, two steps of the tensor cores beside each other; b: two registers of each. */
template <class element, bool across, int each>
static __device__ __forceinline__ void
mma_load_right(const struct mma_stage<each> &s, shared_place stage, const struct mma_places &p,
               unsigned pair, unsigned step, unsigned b[4])
{
    if (!across) {
        matrices_load_from(stage + p.b[step] + pair * 16 * MMA_LINE_BYTES, b);
    } else if (sizeof(element) == 2) {
        const unsigned row_bytes = MMA_SIDE * each * (unsigned)sizeof(element);
        matrices_load_turned_from(stage + p.b[pair] + step * 16 * row_bytes, b);
    } else {
        unsigned column = threadIdx.x / WARP % MMA_WARPS_ACROSS * (MMA_COLUMNS * each);
        mma_load_words<each>(s.b, column + pair * 16, step, b);
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        mma_round<element>(&b[k]);
}

/* s and stage: the same. */
template <class element, bool across, int each>
static __device__ __forceinline__ void mma_multiply(const struct mma_stage<each> &s,
                                                    shared_place stage, const struct mma_places &p,
                                                    float (&sums)[each][each][4])
{
#pragma unroll
    for (unsigned step = 0; step < MMA_STEPS; step++) {
        unsigned a[each][4], b[each * 2];
#pragma unroll
        for (int i = 0; i < each; i++) {
            matrices_load_from(stage + p.a[step] + i * MMA_ROWS * MMA_LINE_BYTES, a[i]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                mma_round<element>(&a[i][k]);
        }
#pragma unroll
        for (unsigned pair = 0; pair < each / 2; pair++)
            mma_load_right<element, across, each>(s, stage, p, pair, step, b + pair * 4);
#pragma unroll
        for (int i = 0; i < each; i++)
#pragma unroll
            for (int j = 0; j < each; j++)
                mma_step(element{}, sums[i][j], a[i], b + j * 2);
    }
}

template <class element, bool across, int each> struct mma_block {
    struct mma_lines<element> a, b;
    unsigned row, column;
};

/* A warp whose part lies beyond the results multiplies nothing. */
template <class element, bool across, int each>
static __device__ __forceinline__ bool
mma_is_needed(const struct mma_block<element, across, each> &b)
{
    unsigned warp = threadIdx.x / WARP, columns = across ? b.b.length : b.b.count;
    return b.row + warp / MMA_WARPS_ACROSS * (MMA_ROWS * each) < b.a.count &&
           b.column + warp % MMA_WARPS_ACROSS * (MMA_COLUMNS * each) < columns;
}

/* Stages first..end - 1 of the depth. A stage is filled again when all have passed the barrier
 * after its last reading. Each round begins one stage's copies and multiplies another: written
 * once, so that the instructions of the loop stay few. */
template <class element, bool across, int each>
static __device__ __forceinline__ void
mma_product(const struct mma_block<element, across, each> &b, unsigned first, unsigned end,
            struct mma_stage<each> *stages, float (&sums)[each][each][4])
{
    const unsigned ahead = MMA_STAGES(each) - 1, depth = MMA_LINE_BYTES / sizeof(element);
    struct mma_share<element> left = mma_share_of<element, false, each>(b.a, b.row, first * depth);
    struct mma_share<element> right =
        mma_share_of<element, across, each>(b.b, b.column, first * depth);
    struct mma_places places = mma_places_of<element, across, each>();
    shared_place memory = shared_place_of(stages);
    unsigned count = end > first ? end - first : 0, filled = 0, used = 0;
    unsigned needed = mma_is_needed(b);
    KEEP(memory);
    KEEP(needed);
#pragma unroll 1
    for (unsigned n = 0; n < count + ahead; n++) {
        if (n >= ahead) {
            copies_wait<ahead - 1>();
            __syncthreads();
        }
        if (n < count) {
            struct mma_stage<each> *s = stages + filled;
            shared_place to = memory + filled * sizeof *s;
            mma_fill<element, false, each>(left, to, s->a);
            mma_fill<element, across, each>(right, to + sizeof s->a, s->b);
            filled = filled == ahead ? 0 : filled + 1;
        }
        copies_end_group();
        if (n < ahead)
            continue;
        if (needed)
            mma_multiply<element, across, each>(
                stages[used], memory + used * sizeof(struct mma_stage<each>), places, sums);
        used = used == ahead ? 0 : used + 1;
    }
}

/* ---- results: sums[i][j][2 half_of] and the next are two neighbours of a row ---- */

template <int each> static __device__ __forceinline__ unsigned mma_warp_row(void)
{
    unsigned warp = threadIdx.x / WARP;
    return (blockIdx.y * MMA_WARPS_DOWN + warp / MMA_WARPS_ACROSS) * (MMA_ROWS * each);
}

template <int each> static __device__ __forceinline__ unsigned mma_warp_column(void)
{
    unsigned warp = threadIdx.x / WARP;
    return blockIdx.x * MMA_SIDE * each + warp % MMA_WARPS_ACROSS * (MMA_COLUMNS * each);
}

template <int each> static __device__ __forceinline__ unsigned mma_result_row(int i, int half_of)
{
    return mma_warp_row<each>() + i * MMA_ROWS + threadIdx.x % WARP / 4 + half_of * 8;
}

template <int each> static __device__ __forceinline__ unsigned mma_result_column(int j)
{
    return mma_warp_column<each>() + j * MMA_COLUMNS + threadIdx.x % 4 * 2;
}

#endif
