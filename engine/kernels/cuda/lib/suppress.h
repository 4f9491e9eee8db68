/* SPDX-License-Identifier: Apache-2.0
 *
 * Greedy suppression of overlapping boxes, in lists of candidates that come in order. Two launches:
 * many blocks compare all pairs and note a bit of each (suppress_pairs.h); then a block per list
 * goes through tiles of 64 candidates. What earlier tiles have kept crosses out candidates of a
 * tile by an AND with their bits, which were loaded while the tile before was decided; within a
 * tile a warp decides in rounds, all at once for whom nobody before is undecided. Two barriers a
 * tile, not some a box. Lists too long for the memory of their bits are taken in chunks; what
 * earlier chunks have kept is compared with all of the next. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H
#define ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H

#include "engine/kernels/cuda/lib/suppress_pairs.h"

namespace
{

/* ---- decisions ---- */

/* What the first warp knows of a tile before it is decided: of the lane's candidates, lane and
 * lane + 32, with whom of the tile they overlap, and their boxes; whom earlier chunks cross out. */
struct suppress_ahead {
    box_bits with[2], crossed;
    unsigned place[2];
};

static __device__ __forceinline__ void load_own(const struct suppression &s, unsigned line,
                                                unsigned t, unsigned left, struct suppress_ahead *a)
{
    size_t at = (size_t)line * s.tiles + t;
    const box_bits *own = s.overlaps + (at * s.tiles + t) * SUPPRESS_TILE;
    for (unsigned h = 0; h < 2; h++) {
        unsigned i = threadIdx.x + h * WARP;
        a->with[h] = own[i];
        a->place[h] = i < left ? place_of(s, line, s.first + t * SUPPRESS_TILE + i) : 0;
    }
    a->crossed = s.first ? (box_bits)s.crossed[at * 2 + 1] << WARP | s.crossed[at * 2] : 0;
    if (left < SUPPRESS_TILE) /* what is no candidate */
        a->crossed |= ~0ull << left;
}

/* Words of the thread's candidate, one of 64, and of tiles before t. */
static __device__ __forceinline__ void load_before(const struct suppression &s, unsigned line,
                                                   unsigned t, box_bits held[SUPPRESS_HELD])
{
    unsigned groups = blockDim.x / SUPPRESS_TILE;
    const box_bits *row = s.overlaps + ((size_t)line * s.tiles + t) * s.tiles * SUPPRESS_TILE;
#pragma unroll
    for (unsigned e = 0; e < SUPPRESS_HELD; e++) {
        unsigned column = threadIdx.x / SUPPRESS_TILE + e * groups;
        held[e] = column < t ? row[column * SUPPRESS_TILE + threadIdx.x % SUPPRESS_TILE] : 0;
    }
}

static __device__ __forceinline__ bool is_crossed(const box_bits held[SUPPRESS_HELD],
                                                  const struct suppress_memory &m)
{
    unsigned groups = blockDim.x / SUPPRESS_TILE;
    bool crossed = false;
#pragma unroll
    for (unsigned e = 0; e < SUPPRESS_HELD; e++) {
        unsigned column = threadIdx.x / SUPPRESS_TILE + e * groups;
        crossed |= held[e] != 0 && (held[e] & m.kept[column]) != 0;
    }
    return crossed;
}

static __device__ __forceinline__ box_bits ballot_of_two(bool low, bool high)
{
    return (box_bits)__ballot_sync(all_lanes, high) << WARP | __ballot_sync(all_lanes, low);
}

/* Of the candidates that are left those that stay; by a warp. */
static __device__ __forceinline__ box_bits decide(const struct suppress_ahead &a, box_bits left)
{
    box_bits kept = 0;
    while (left) {
        bool stays[2], goes[2];
        for (unsigned h = 0; h < 2; h++) {
            bool open = left >> (threadIdx.x + h * WARP) & 1;
            goes[h] = open && (a.with[h] & kept);
            stays[h] = open && !(a.with[h] & (kept | left));
        }
        box_bits more = ballot_of_two(stays[0], stays[1]);
        left &= ~(more | ballot_of_two(goes[0], goes[1]));
        kept |= more;
    }
    return kept;
}

static __device__ __forceinline__ unsigned bits_of(box_bits x)
{
    return (unsigned)(__popc((unsigned)x) + __popc((unsigned)(x >> WARP)));
}

/* The first warp decides tile t: what is kept goes into memory and result, up to the limit. */
static __device__ __forceinline__ void decide_tile(const struct suppression &s, unsigned line,
                                                   unsigned t, unsigned limit,
                                                   const struct suppress_ahead &a,
                                                   struct suppress_memory *m)
{
    unsigned lane = threadIdx.x, word = lane < blockDim.x / WARP ? m->part[lane] : 0;
    unsigned before = m->count;
    for (int with = 2; with < WARP; with *= 2)
        word |= __shfl_xor_sync(all_lanes, word, with);
    box_bits crossed = (box_bits)__shfl_sync(all_lanes, word, 1) << WARP;
    crossed |= a.crossed | __shfl_sync(all_lanes, word, 0);
    box_bits kept = decide(a, ~crossed);
    for (unsigned h = 0; h < 2; h++) {
        unsigned i = lane + h * WARP, at = before + bits_of(kept & ((1ull << i) - 1));
        if ((kept >> i & 1) && at < limit)
            s.kept[(size_t)line * s.limit + at] = a.place[h];
    }
    __syncwarp();
    if (lane == 0) {
        unsigned after = before + bits_of(kept);
        m->kept[t] = kept;
        m->count = after < limit ? after : limit;
    }
}

__global__ void __launch_bounds__(RANK_THREADS)
    suppress_lines(const __grid_constant__ struct suppression s)
{
    KERNEL_BEGIN();
    __shared__ struct suppress_memory m;
    unsigned line = blockIdx.x, found = s.ranked.lengths[line], limit = suppress_limit(s);
    unsigned count = s.first ? s.counts[line] : 0, all = s.tiles * SUPPRESS_TILE;
    unsigned n = found > s.first ? found - s.first : 0;
    struct suppress_ahead next = {};
    box_bits held[SUPPRESS_HELD] = {};
    n = n < all ? n : all;
    if (n == 0 || count >= limit) {
        if (threadIdx.x == 0 && s.first == 0)
            s.counts[line] = 0;
        return;
    }
    if (threadIdx.x == 0)
        m.count = count;
    if (threadIdx.x < WARP)
        load_own(s, line, 0, n, &next);
    for (unsigned t = 0; t * SUPPRESS_TILE < n && count < limit; t++) {
        struct suppress_ahead now = next;
        unsigned from = (t + 1) * SUPPRESS_TILE;
        unsigned bits = __ballot_sync(all_lanes, is_crossed(held, m));
        if (threadIdx.x % WARP == 0)
            m.part[threadIdx.x / WARP] = bits;
        __syncthreads();
        if (from < n) {
            load_before(s, line, t + 1, held);
            if (threadIdx.x < WARP)
                load_own(s, line, t + 1, n - from, &next);
        }
        if (threadIdx.x < WARP)
            decide_tile(s, line, t, limit, now, &m);
        __syncthreads();
        count = m.count;
    }
    if (threadIdx.x == 0)
        s.counts[line] = count;
    for (unsigned i = threadIdx.x; i < s.tiles * 2; i += blockDim.x) /* for the next chunk */
        s.crossed[(size_t)line * s.tiles * 2 + i] = 0;
}

} /* namespace */

/* ---- host ---- */

/* From the sizes of s. */
static inline void suppress_plan(struct suppression *s)
{
    int64_t limit = SUPPRESS_TILES, tiles = div_up(s->count, SUPPRESS_TILE);
    tiles = tiles < limit ? tiles : limit;
    while (tiles > 1 && s->lines * tiles * tiles * SUPPRESS_TILE * 8 > SUPPRESS_BYTES)
        tiles = div_up(tiles, 2);
    s->tiles = (unsigned)tiles;
}

/* Puts the parts of the workspace into s, which is planned; returns how long it is. */
static inline size_t suppress_lay_out(struct suppression *s, char *memory)
{
    size_t at = 0;
    int64_t words = (int64_t)s->lines * s->tiles;
    s->overlaps = (box_bits *)memory;
    at += padded_bytes(words * s->tiles * SUPPRESS_TILE, sizeof(box_bits));
    s->crossed = (unsigned *)(memory + at);
    at += padded_bytes(words, 2 * sizeof(unsigned));
    s->counts = (unsigned *)(memory + at);
    at += padded_bytes(s->lines, sizeof(unsigned));
    s->kept = (unsigned *)(memory + at);
    return at + padded_bytes((int64_t)s->lines * s->limit, sizeof(unsigned));
}

/* Behind rank_launch of s->ranked. */
static inline void suppress_launch(struct suppression *s, const struct kernel_args *args)
{
    unsigned pairs = s->tiles * (s->tiles + 1) / 2, threads = SUPPRESS_TILE;
    while (threads * SUPPRESS_HELD < s->tiles * SUPPRESS_TILE)
        threads *= 2;
    for (s->first = 0; s->first < s->count; s->first += s->tiles * SUPPRESS_TILE) {
        int64_t kept = s->first < s->limit ? s->first : s->limit, limit = SUPPRESS_PARTS;
        int64_t parts = div_up(kept, 4 * SUPPRESS_TILE);
        s->parts = (unsigned)(parts < 1 ? 1 : parts < limit ? parts : limit);
        unsigned blocks = pairs + (s->first ? s->tiles * s->parts : 0);
        LAUNCH(suppress_pairs, cuda_size(s->lines, blocks), cuda_size(SUPPRESS_TILE), 0, s, args);
        LAUNCH(suppress_lines, cuda_size(s->lines), cuda_size(threads), 0, s, args);
    }
}

#endif
