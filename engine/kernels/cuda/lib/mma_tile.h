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
    MMA_LINE_CHUNKS = 4, /* along the depth, per stage */
    MMA_LINE_BYTES = MMA_LINE_CHUNKS * MMA_CHUNK,
    MMA_STEPS = 2, /* of the tensor cores, per stage */
    MMA_WARPS_DOWN = 2,
    MMA_WARPS_ACROSS = 4,
    MMA_SIDE = MMA_ROWS * MMA_WARPS_DOWN, /* of a block's results, times `each` */
};

/* 48 KiB of them, what a block has without asking: of small blocks few are on a multiprocessor, so
 * what is under way must outlast the latency of memory. */
#define MMA_STAGES(each) (12 / (each))

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

/* A chunk of which `bytes` are there, from memory where it cannot be copied at once but by pieces.
 * Out of line: what few need should not lie between the instructions of what all do. */
template <class element>
static __device__ OUT_OF_LINE void mma_fill_odd(uint4 *to, const element *from, unsigned bytes,
                                                unsigned piece)
{
    const unsigned limit = MMA_CHUNK / sizeof(element);
    if (piece == MMA_CHUNK / 2)
        mma_fill_pieces<MMA_CHUNK / 2>(to, from, bytes);
    else if (piece == MMA_CHUNK / 4)
        mma_fill_pieces<MMA_CHUNK / 4>(to, from, bytes);
    for (unsigned k = 0; k < limit && piece == 0; k++)
        ((element *)to)[k] = k * sizeof(element) < bytes ? from[k] : element{};
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
    else
        mma_fill_odd(to, from, bytes, f.piece);
}

/* What a thread copies of a factor: of each stage `each` / 2 chunks, which lie BLOCK chunks apart
 * in it. Along the depth a stage has the next elements of the same lines, across it the same
 * elements of the next lines. */
template <class element> struct mma_share {
    const element *from;  /* of the first chunk, in the next stage */
    int left, lines;      /* elements and lines that there are from there on */
    unsigned piece, at;   /* at: the first chunk's place in its half of a stage, in bytes */
    int64_t apart, ahead; /* elements to the next chunk and to the next stage */
};

template <class element, bool across, int each>
static __device__ __forceinline__ struct mma_share<element>
mma_share_of(const struct mma_lines<element> &f, unsigned line, unsigned depth) {
    const unsigned per_chunk = MMA_CHUNK / sizeof(element);
    const unsigned chunks = across ? MMA_SIDE * each / per_chunk : (unsigned)MMA_LINE_CHUNKS;
    unsigned row = threadIdx.x / chunks, chunk = threadIdx.x % chunks, at = chunk * per_chunk;
    unsigned first = row + (across ? depth : line), start = at + (across ? line : depth);
    int64_t stride = f.count > 1 ? f.stride : 0; /* an only line's need not be of whole pieces */
    struct mma_share<element> s;
    s.from = f.data + first * stride + start;
    s.left = (int)f.length - (int)start;
    s.lines = (int)f.count - (int)first;
    s.piece = f.piece;
    s.at = across ? mma_across_at<element>(row, chunk, chunks) : mma_along_at(row, chunk);
    s.at *= MMA_CHUNK;
    KEEP(s.at);
    s.apart = BLOCK / chunks * stride;
    s.ahead = (int64_t)(MMA_LINE_BYTES / sizeof(element)) * (across ? stride : 1);
    return s;
}

/* Its chunks of half a stage, which begins at `half_of`, and at `to`. */
template <class element, bool across, int each>
static __device__ __forceinline__ void mma_fill(struct mma_share<element> &s, shared_place to,
                                                uint4 *half_of)
{
    const int per_chunk = MMA_CHUNK / sizeof(element), depth = MMA_LINE_BYTES / sizeof(element);
    const int rows = BLOCK / (across ? MMA_SIDE * each / per_chunk : (int)MMA_LINE_CHUNKS);
    unsigned most = (unsigned)max(min(s.left, per_chunk), 0) * (unsigned)sizeof(element);
#pragma unroll
    for (int i = 0; i < each / 2; i++) {
        unsigned bytes = s.lines > i * rows ? most : 0;
        const element *from = s.from + i * s.apart;
        if (s.piece == MMA_CHUNK)
            copy_later_to<MMA_CHUNK>(to + s.at + i * BLOCK * MMA_CHUNK, from, bytes);
        else
            mma_fill_odd(half_of + s.at / MMA_CHUNK + i * BLOCK, from, bytes, s.piece);
    }
    s.from += s.ahead;
    if (across)
        s.lines -= depth;
    else
        s.left -= depth;
}

/* ---- multiplying ---- */

/* Where a lane finds what it multiplies, in bytes from the begin of the stage: of the left factor
 * by step; of the right one by step if it lies along the depth, else by 16 columns. */
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

/* ---- host ---- */

/* Bytes that can be copied at once where lines are `stride` apart, of at most `piece`; 0: none. */
static inline unsigned mma_piece_of(int64_t stride_bytes, unsigned piece)
{
    while (piece >= MMA_CHUNK / 4 && stride_bytes % piece != 0)
        piece /= 2;
    return piece >= MMA_CHUNK / 4 ? piece : 0;
}

#endif
