/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's part of a product on tensor cores: eight warps, two by four, have the results of a
 * square of 32 `each` a side in registers; the factors go through shared memory in stages of 64
 * bytes of depth, which are copied while those before them are multiplied.
 *
 * The left factor lies along the depth; the right one along it (a transposed weight) or across it
 * (any other weight). Chunks of 16 bytes are stored at their place with some bits changed by the
 * row's, so that neither copies nor ldmatrix meet in a bank. What is beyond a matrix is 0 there,
 * so that nobody else has to know. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MMA_TILE_H
#define ENGINE_KERNELS_CUDA_LIB_MMA_TILE_H

#include "engine/kernels/cuda/lib/mma.h"

enum {
    MMA_STAGES = 3,
    MMA_LINE_CHUNKS = 4, /* along the depth, per stage */
    MMA_LINE_BYTES = MMA_LINE_CHUNKS * MMA_CHUNK,
    MMA_STEPS = 2, /* of the tensor cores, per stage */
    MMA_WARPS_DOWN = 2,
    MMA_WARPS_ACROSS = 4,
    MMA_SIDE = MMA_ROWS * MMA_WARPS_DOWN, /* of a block's results, times `each` */
};

template <int each> struct mma_stage {
    uint4 a[MMA_SIDE * each * MMA_LINE_CHUNKS], b[MMA_SIDE * each * MMA_LINE_CHUNKS];
};

/* ---- where a chunk lies ---- */

/* Of a line along the depth: two lines are as wide as all banks, so four pairs of them differ. */
static __device__ __forceinline__ unsigned mma_along_at(unsigned line, unsigned chunk)
{
    return line * MMA_LINE_CHUNKS + (chunk ^ (line >> 1) % MMA_LINE_CHUNKS);
}

/* Of a row of `chunks` across the depth. ldmatrix reads a chunk of eight rows at once; of tf32 the
 * lanes read two neighbouring chunks of four rows. */
template <class element>
static __device__ __forceinline__ unsigned mma_across_at(unsigned row, unsigned chunk,
                                                         unsigned chunks)
{
    return row * chunks + (chunk ^ (sizeof(element) == 2 ? row % 8 : row % 4 * 2));
}

/* ---- filling ---- */

/* A factor's lines, `stride` elements apart. */
template <class element> struct mma_lines {
    const element *data;
    int64_t stride;
    unsigned count, length; /* lines and elements of a line that there are */
    unsigned piece;         /* bytes that are copied at once: all lines begin at a multiple */
};

/* Part of a chunk; bytes: those that are there. */
template <int piece>
static __device__ __forceinline__ void mma_fill_pieces(uint4 *to, const void *from, unsigned bytes)
{
#pragma unroll
    for (unsigned at = 0; at < MMA_CHUNK; at += piece) {
        unsigned left = bytes > at ? min(bytes - at, (unsigned)piece) : 0;
        copy_later<piece>((char *)to + at, (const char *)from + (left ? at : 0), left);
    }
}

/* Elements at..at + 15 bytes of a line; 0 where there are none. */
template <class element>
static __device__ __forceinline__ void mma_fill_chunk(uint4 *to, const struct mma_lines<element> &f,
                                                      unsigned line, unsigned at)
{
    const unsigned limit = MMA_CHUNK / sizeof(element);
    unsigned count = line < f.count && at < f.length ? min(f.length - at, limit) : 0;
    const element *from = f.data + (count ? line * f.stride + at : 0);
    unsigned bytes = count * (unsigned)sizeof(element);
    if (f.piece == MMA_CHUNK)
        copy_later<MMA_CHUNK>(to, from, bytes);
    else if (f.piece == MMA_CHUNK / 2)
        mma_fill_pieces<MMA_CHUNK / 2>(to, from, bytes);
    else if (f.piece == MMA_CHUNK / 4)
        mma_fill_pieces<MMA_CHUNK / 4>(to, from, bytes);
    for (unsigned k = 0; k < limit && f.piece == 0; k++)
        ((element *)to)[k] = k < count ? from[k] : element{};
}

template <class element, int each>
static __device__ __forceinline__ void mma_fill_along(uint4 *to, const struct mma_lines<element> &f,
                                                      unsigned line, unsigned depth)
{
    const unsigned per_chunk = MMA_CHUNK / sizeof(element);
#pragma unroll
    for (unsigned t = threadIdx.x; t < MMA_SIDE * each * MMA_LINE_CHUNKS; t += BLOCK) {
        unsigned n = t / MMA_LINE_CHUNKS, chunk = t % MMA_LINE_CHUNKS;
        mma_fill_chunk(to + mma_along_at(n, chunk), f, line + n, depth + chunk * per_chunk);
    }
}

template <class element, int each>
static __device__ __forceinline__ void
mma_fill_across(uint4 *to, const struct mma_lines<element> &f, unsigned column, unsigned depth)
{
    const unsigned per_chunk = MMA_CHUNK / sizeof(element), chunks = MMA_SIDE * each / per_chunk;
#pragma unroll
    for (unsigned t = threadIdx.x; t < MMA_SIDE * each * MMA_LINE_CHUNKS; t += BLOCK) {
        unsigned row = t / chunks, chunk = t % chunks;
        mma_fill_chunk(to + mma_across_at<element>(row, chunk, chunks), f, depth + row,
                       column + chunk * per_chunk);
    }
}

/* ---- multiplying ---- */

/* Of 16 columns, two steps of the tensor cores beside each other; b: two registers of each. */
template <class element, bool across, int each>
static __device__ __forceinline__ void mma_load_right(const uint4 *right, unsigned column,
                                                      unsigned step, unsigned b[4])
{
    unsigned lane = threadIdx.x % WARP, per_chunk = MMA_CHUNK / sizeof(element);
    unsigned chunks = MMA_SIDE * each / per_chunk;
    if (!across) {
        unsigned line = column + lane % 8 + lane / 16 * 8;
        matrices_load(right + mma_along_at(line, step * 2 + lane / 8 % 2), b);
    } else if (sizeof(element) == 2) {
        unsigned row = step * 16 + lane % 16, chunk = column / per_chunk + lane / 16;
        matrices_load_turned(right + mma_across_at<element>(row, chunk, chunks), b);
    } else {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            unsigned row = step * 8 + lane % 4 + k % 2 * 4, at = column + k / 2 * 8 + lane / 4;
            const uint4 *chunk = right + mma_across_at<element>(row, at / 4, chunks);
            b[k] = ((const unsigned *)chunk)[at % 4];
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        mma_round<element>(&b[k]);
}

template <class element, bool across, int each>
static __device__ __forceinline__ void mma_multiply(const struct mma_stage<each> &s,
                                                    float (&sums)[each][each][4])
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned row = warp / MMA_WARPS_ACROSS * (MMA_ROWS * each);
    unsigned column = warp % MMA_WARPS_ACROSS * (MMA_COLUMNS * each);
#pragma unroll
    for (unsigned step = 0; step < MMA_STEPS; step++) {
        unsigned a[each][4], b[each * 2];
#pragma unroll
        for (int i = 0; i < each; i++) {
            unsigned line = row + i * MMA_ROWS + lane % 16;
            matrices_load(s.a + mma_along_at(line, step * 2 + lane / 16), a[i]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                mma_round<element>(&a[i][k]);
        }
#pragma unroll
        for (int j = 0; j < each; j += 2)
            mma_load_right<element, across, each>(s.b, column + j * MMA_COLUMNS, step, b + j * 2);
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

template <class element, bool across, int each>
static __device__ __forceinline__ void mma_fill(const struct mma_block<element, across, each> &at,
                                                unsigned number, struct mma_stage<each> *stages)
{
    struct mma_stage<each> &s = stages[number % MMA_STAGES];
    unsigned depth = number * (MMA_LINE_BYTES / sizeof(element));
    mma_fill_along<element, each>(s.a, at.a, at.row, depth);
    if (across)
        mma_fill_across<element, each>(s.b, at.b, at.column, depth);
    else
        mma_fill_along<element, each>(s.b, at.b, at.column, depth);
}

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
 * after its last reading. */
template <class element, bool across, int each>
static __device__ __forceinline__ void
mma_product(const struct mma_block<element, across, each> &b, unsigned first, unsigned end,
            struct mma_stage<each> *stages, float (&sums)[each][each][4])
{
    bool needed = mma_is_needed(b);
    for (unsigned n = first; n < first + MMA_STAGES - 1; n++) {
        if (n < end)
            mma_fill(b, n, stages);
        copies_end_group();
    }
    for (unsigned n = first; n < end; n++) {
        copies_wait<MMA_STAGES - 2>();
        __syncthreads();
        if (n + MMA_STAGES - 1 < end)
            mma_fill(b, n + MMA_STAGES - 1, stages);
        copies_end_group();
        if (needed)
            mma_multiply<element, across, each>(stages[n % MMA_STAGES], sums);
    }
}

/* ---- results: sums[i][j][2 half_of] and the next are two neighbours of a row ---- */

template <int each> static __device__ __forceinline__ unsigned mma_result_row(int i, int half_of)
{
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    return (blockIdx.y * MMA_WARPS_DOWN + warp / MMA_WARPS_ACROSS) * (MMA_ROWS * each) +
           i * MMA_ROWS + lane / 4 + half_of * 8;
}

template <int each> static __device__ __forceinline__ unsigned mma_result_column(int j)
{
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    return blockIdx.x * MMA_SIDE * each + warp % MMA_WARPS_ACROSS * (MMA_COLUMNS * each) +
           j * MMA_COLUMNS + lane % 4 * 2;
}

/* ---- host ---- */

/* Bytes that can be copied at once where lines are `stride` apart, of at most `piece`; 0: none. */
static inline unsigned mma_piece_of(int64_t stride_bytes, unsigned piece)
{
    while (piece >= MMA_CHUNK / 4 && stride_bytes % piece != 0)
        piece /= 2;
    return piece >= MMA_CHUNK / 4 ? piece : 0;
}

#endif
