/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of candidates to be suppressed (suppress.h), and the kernel that compares all pairs of
 * them, 64 x 64 at a time, and notes a bit of each. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SUPPRESS_PAIRS_H
#define ENGINE_KERNELS_CUDA_LIB_SUPPRESS_PAIRS_H

#include "engine/kernels/cuda/lib/ranking_lists.h"

enum {
    SUPPRESS_TILE = 64,
    SUPPRESS_HELD = 8,   /* words that a thread loads ahead */
    SUPPRESS_TILES = 64, /* most of a chunk */
    SUPPRESS_BYTES = 128 << 20,
    SUPPRESS_PARTS = 256, /* most blocks that share what a tile is compared with */
};

typedef unsigned long long box_bits; /* of a tile */

struct suppression {
    struct rank_lists ranked; /* candidates of a line: keys, whose low half is the box */
    unsigned lines, count;    /* count: the most candidates of a line */
    unsigned limit;           /* boxes of a line to keep; *wanted, if that is given and less */
    const int64_t *wanted;
    /* Boxes are two corners: low x, low y, high z, high w (which axis comes first does not
     * matter); of an image, which has so many lines. */
    const float4 *boxes;
    unsigned boxes_each, lines_each;
    float iou;           /* what overlaps by more is crossed out (intersection over union) */
    const float *iou_at; /* NULL: iou is it */
    /* suppress_lay_out: */
    unsigned tiles;     /* of a chunk */
    box_bits *overlaps; /* [lines, tiles, tiles, 64]: with whom of the second tile, if earlier */
    unsigned *crossed;  /* [lines, tiles, 2]: by boxes of chunks before; 0 before those are asked */
    unsigned *kept;     /* [lines, limit]: the result, boxes in order */
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
    int64_t wanted = s.wanted ? *s.wanted : s.limit;
    return wanted < 0 ? 0 : wanted < s.limit ? (unsigned)wanted : s.limit;
}

/* The box of the line's candidate i. */
static __device__ __forceinline__ unsigned place_of(const struct suppression &s, unsigned line,
                                                    unsigned i)
{
    return (unsigned)s.ranked.keys[(size_t)line * s.ranked.capacity + i];
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
        const unsigned *places = s.kept + (size_t)line * s.limit;
        fill_tile(tile, k < kept ? box_at(s, line, places[k]) : no_box());
        crossed |= overlaps_of(*tile, box, iou) != 0;
        __syncthreads();
    }
    unsigned bits = __ballot_sync(all_lanes, crossed);
    if (threadIdx.x % WARP == 0 && bits)
        atomicOr(&s.crossed[((size_t)line * s.tiles + row) * 2 + threadIdx.x / WARP], bits);
}

/* Block (line, y): the y-th pair of tiles, the later one first; after all pairs, in later chunks,
 * a tile and a part of what was kept. */
__global__ void __launch_bounds__(SUPPRESS_TILE)
    suppress_pairs(const __grid_constant__ struct suppression s)
{
    KERNEL_BEGIN();
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

} /* namespace */

#endif
