/* SPDX-License-Identifier: Apache-2.0
 *
 * Greedy suppression of overlapping boxes, in lists of candidates that come in order. Two launches:
 * many blocks compare all pairs, 64 x 64 of them at a time, and note a bit of each; then a block
 * per list goes through tiles of 64 candidates. What earlier tiles have kept crosses out candidates
 * of a tile by an AND with their bits, which were loaded while the tile before was decided; within
 * a tile a warp decides in rounds, all at once for whom nobody before is undecided. Two barriers a
 * tile, not some a box. Lists too long for the memory of their bits are taken in chunks; what
 * earlier chunks have kept is compared with all of the next. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H
#define ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H

#include "engine/kernels/cuda/lib/ranking_lists.h"

enum {
    SUPPRESS_TILE = 64,
    SUPPRESS_HELD = 8,    /* words that a thread loads ahead */
    SUPPRESS_TILES = 64,  /* most of a chunk */
    SUPPRESS_BYTES = 128 << 20,
    SUPPRESS_PARTS = 256, /* most blocks that share what a tile is compared with */
};

typedef unsigned long long box_bits; /* of a tile */

struct suppression {
    struct rank_lists ranked; /* candidates of a line: keys, whose low half is the box */
    unsigned lines, count;    /* count: the most candidates of a line */
    unsigned most;            /* boxes of a line to keep; *wanted, if that is given and less */
    const int64_t *wanted;
    /* Boxes are two corners: low x, low y, high z, high w (which axis comes first does not
     * matter); of an image, which has so many lines. */
    const float4 *boxes;
    unsigned boxes_each, lines_each;
    float iou; /* what overlaps by more is crossed out (intersection over union) */
    const float *iou_at; /* NULL: iou is it */
    /* suppress_lay_out: */
    unsigned tiles;     /* of a chunk */
    box_bits *overlaps; /* [lines, tiles, tiles, 64]: with whom of the second tile, if earlier */
    unsigned *crossed;  /* [lines, tiles, 2]: by boxes of chunks before; 0 before those are asked */
    unsigned *kept;     /* [lines, most]: the result, boxes in order */
    unsigned *counts;   /* [lines]: how many */
    /* suppress_launch, by launch: */
    unsigned first, parts; /* candidate of the chunk; blocks that share what was kept before */
};

struct suppress_tile {
    float4 box[SUPPRESS_TILE];
    float area[SUPPRESS_TILE];
};

struct suppress_memory {
    box_bits kept[SUPPRESS_TILES];
    unsigned part[WARP]; /* of each warp's candidates, those that are crossed out */
    unsigned count;
};

/* Files that suppress have these kernels of their own. */
namespace
{

static __device__ __forceinline__ float box_area(const float4 &a)
{
    return (a.z - a.x) * (a.w - a.y);
}

/* both / all > iou, written both - iou all > 0. Boxes that do not touch cover nothing, whatever
 * rounding says. */
static __device__ __forceinline__ bool boxes_overlap(const float4 &a, float area_a, const float4 &b,
                                                     float area_b, float iou)
{
    float height = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0);
    float width = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0);
    float both = height * width, all = area_a + area_b - both;
    return both > 0 && fmaf(-iou, all, both) > 0;
}

static __device__ __forceinline__ unsigned suppress_limit(const struct suppression &s)
{
    int64_t wanted = s.wanted ? *s.wanted : s.most;
    return wanted < 0 ? 0 : wanted < s.most ? (unsigned)wanted : s.most;
}

/* The box of the line's candidate i. */
static __device__ __forceinline__ unsigned place_of(const struct suppression &s, unsigned line,
                                                    unsigned i)
{
    return (unsigned)s.ranked.keys[(size_t)line * s.ranked.room + i];
}

static __device__ __forceinline__ float4 box_at(const struct suppression &s, unsigned line,
                                                unsigned place)
{
    return s.boxes[(size_t)(line / s.lines_each) * s.boxes_each + place];
}

static __device__ __forceinline__ float4 no_box(void)
{
    return make_float4(0, 0, 0, 0);
}

/* ---- pairs ---- */

/* A bit for each box of the tile that overlaps this one. */
static __device__ __forceinline__ box_bits overlaps_of(const struct suppress_tile &tile,
                                                       const float4 &box, float iou)
{
    box_bits bits = 0;
    float area = box_area(box);
    for (int half = 0; half < 2; half++) {
        unsigned word = 0;
#pragma unroll
        for (int j = 0; j < WARP; j++) {
            int at = half * WARP + j;
            if (boxes_overlap(tile.box[at], tile.area[at], box, area, iou))
                word |= 1u << j;
        }
        bits |= (box_bits)word << half * WARP;
    }
    return bits;
}

static __device__ __forceinline__ void fill_tile(struct suppress_tile *tile, const float4 &box)
{
    tile->box[threadIdx.x] = box;
    tile->area[threadIdx.x] = box_area(box);
    __syncthreads();
}

/* Candidates of tile `row` against a part of what earlier chunks have kept. */
static __device__ __forceinline__ void cross_out(const struct suppression &s, unsigned line,
                                                 unsigned row, unsigned part,
                                                 struct suppress_tile *tile)
{
    unsigned kept = s.counts[line], i = s.first + row * SUPPRESS_TILE + threadIdx.x;
    float iou = s.iou_at ? *s.iou_at : s.iou;
    bool is = i < s.ranked.lengths[line], crossed = false;
    float4 box = is ? box_at(s, line, place_of(s, line, i)) : no_box();
    unsigned step = s.parts * SUPPRESS_TILE;
    for (unsigned from = part * SUPPRESS_TILE; from < kept; from += step) {
        unsigned k = from + threadIdx.x;
        const unsigned *places = s.kept + (size_t)line * s.most;
        fill_tile(tile, k < kept ? box_at(s, line, places[k]) : no_box());
        crossed |= overlaps_of(*tile, box, iou) != 0;
        __syncthreads();
    }
    unsigned bits = __ballot_sync(all_lanes, crossed);
    if (threadIdx.x % WARP == 0 && bits)
        atomicOr(&s.crossed[((size_t)line * s.tiles + row) * 2 + threadIdx.x / WARP], bits);
}

/* Block (line, y): the y-th pair of tiles, the later one first; behind all pairs, in later chunks,
 * a tile and a part of what was kept. */
__global__ void __launch_bounds__(SUPPRESS_TILE)
    suppress_pairs(const __grid_constant__ struct suppression s)
{
    __shared__ struct suppress_tile tile;
    unsigned line = blockIdx.x, pair = blockIdx.y, pairs = s.tiles * (s.tiles + 1) / 2;
    unsigned row = (unsigned)((sqrtf(8.0f * (float)pair + 1) - 1) / 2), t = threadIdx.x;
    while (row * (row + 1) / 2 > pair)
        row--;
    while ((row + 1) * (row + 2) / 2 <= pair)
        row++;
    row = pair < pairs ? row : (pair - pairs) / s.parts;
    unsigned first = s.first + row * SUPPRESS_TILE, found = s.ranked.lengths[line];
    if (first >= found || (s.first ? s.counts[line] : 0) >= suppress_limit(s))
        return;
    if (pair >= pairs) {
        cross_out(s, line, row, (pair - pairs) % s.parts, &tile);
        return;
    }
    unsigned column = pair - row * (row + 1) / 2, i = s.first + column * SUPPRESS_TILE + t;
    float4 box = i < found ? box_at(s, line, place_of(s, line, i)) : no_box();
    fill_tile(&tile, box);
    if (row != column)
        box = first + t < found ? box_at(s, line, place_of(s, line, first + t)) : no_box();
    box_bits bits = overlaps_of(tile, box, s.iou_at ? *s.iou_at : s.iou);
    if (row == column)
        bits &= (1ull << t) - 1;
    s.overlaps[(((size_t)line * s.tiles + row) * s.tiles + column) * SUPPRESS_TILE + t] = bits;
}

/* ---- decisions ---- */

/* What the first warp knows of a tile before it is decided: of the lane's candidates, lane and
 * lane + 32, with whom of the tile they overlap, and their boxes; whom earlier chunks cross out. */
struct suppress_ahead {
    box_bits with[2], crossed;
    unsigned place[2];
};

static __device__ __forceinline__ void load_own(const struct suppression &s, unsigned line,
                                                unsigned t, unsigned left,
                                                struct suppress_ahead *a)
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
            s.kept[(size_t)line * s.most + at] = a.place[h];
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

static inline void suppress_plan(struct suppression *s)
{
    int64_t most = SUPPRESS_TILES, tiles = div_up(s->count, SUPPRESS_TILE);
    tiles = tiles < most ? tiles : most;
    while (tiles > 1 && s->lines * tiles * tiles * SUPPRESS_TILE * 8 > SUPPRESS_BYTES)
        tiles = div_up(tiles, 2);
    s->tiles = (unsigned)tiles;
}

/* Puts the parts of the workspace into s, which has its sizes; returns how long it is. */
static inline size_t suppress_lay_out(struct suppression *s, char *memory)
{
    size_t at = 0;
    suppress_plan(s);
    int64_t words = (int64_t)s->lines * s->tiles;
    s->overlaps = (box_bits *)memory;
    at += padded_bytes(words * s->tiles * SUPPRESS_TILE, sizeof(box_bits));
    s->crossed = (unsigned *)(memory + at);
    at += padded_bytes(words, 2 * sizeof(unsigned));
    s->counts = (unsigned *)(memory + at);
    at += padded_bytes(s->lines, sizeof(unsigned));
    s->kept = (unsigned *)(memory + at);
    return at + padded_bytes((int64_t)s->lines * s->most, sizeof(unsigned));
}

/* Behind rank_launch of s->ranked. */
static inline void suppress_launch(struct suppression *s, const struct kernel_args *args)
{
    unsigned pairs = s->tiles * (s->tiles + 1) / 2, threads = SUPPRESS_TILE;
    while (threads * SUPPRESS_HELD < s->tiles * SUPPRESS_TILE)
        threads *= 2;
    for (s->first = 0; s->first < s->count; s->first += s->tiles * SUPPRESS_TILE) {
        int64_t kept = s->first < s->most ? s->first : s->most, most = SUPPRESS_PARTS;
        int64_t parts = div_up(kept, 4 * SUPPRESS_TILE);
        s->parts = (unsigned)(parts < 1 ? 1 : parts < most ? parts : most);
        unsigned blocks = pairs + (s->first ? s->tiles * s->parts : 0);
        LAUNCH(suppress_pairs, cuda_size(s->lines, blocks), cuda_size(SUPPRESS_TILE), 0, s, args);
        LAUNCH(suppress_lines, cuda_size(s->lines), cuda_size(threads), 0, s, args);
    }
}

#endif
