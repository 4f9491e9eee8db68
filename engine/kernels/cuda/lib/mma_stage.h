/* SPDX-License-Identifier: Apache-2.0
 *
 * How the factors of a product on tensor cores come into shared memory: in stages of 64 bytes of
 * depth, by copies that run while others are multiplied.
 *
 * The left factor lies along the depth; the right one along it (a transposed weight) or across it
 * (any other weight). Chunks of 16 bytes are stored at their place with some bits changed by the
 * row's, so that neither copies nor ldmatrix meet in a bank. What is beyond a matrix is 0 there,
 * so that nobody else has to know. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MMA_STAGE_H
#define ENGINE_KERNELS_CUDA_LIB_MMA_STAGE_H

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

/* ---- host ---- */

/* Bytes that can be copied at once where lines are `stride` apart, of at most `piece`; 0: none. */
static inline unsigned mma_piece_of(int64_t stride_bytes, unsigned piece)
{
    while (piece >= MMA_CHUNK / 4 && stride_bytes % piece != 0)
        piece /= 2;
    return piece >= MMA_CHUNK / 4 ? piece : 0;
}

#endif
