/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that work along lines (rows) of plain floats: some lanes of a warp per short line, a
 * block per long one, 16 bytes at a time where all lines begin at a multiple of them. Lines of up
 * to line_kept() elements are read once and stay in registers; what the first sweep over a longer
 * one reads is in the second cache for the next, if the grid is grid_in_cache(). */
#ifndef ENGINE_KERNELS_CUDA_LIB_LINES_H
#define ENGINE_KERNELS_CUDA_LIB_LINES_H

#include "engine/kernels/cuda/lib/query.h"

enum {
    LINE_OF_WARP = 1024, /* longest line that one warp does */
    WIDE_BLOCK = 1024,
    KEPT_FEW = 8, /* floats that a thread keeps of a short line */
};

/* Of a longer one: each group that is kept takes a register for its place, too. */
#define KEPT_MANY(width) ((width) == 1 ? 16 : 24)

/* Longest line that a block keeps. */
static inline int64_t line_kept(int width)
{
    return WIDE_BLOCK * (int64_t)KEPT_MANY(width);
}

/* The threads that share a line: `lane` of `lanes`. */
struct line_team {
    unsigned lane, lanes;
    float *part; /* shared memory for sums over a block; a warp needs none */
};

static __device__ __forceinline__ float team_sum(const struct line_team &t, float x)
{
    if (t.lanes > WARP)
        return block_sum(x, t.part);
    for (unsigned with = t.lanes / 2; with > 0; with /= 2)
        x += __shfl_xor_sync(all_lanes, x, (int)with);
    return x;
}

static __device__ __forceinline__ float team_max(const struct line_team &t, float x)
{
    if (t.lanes > WARP)
        return block_max(x, t.part);
    for (unsigned with = t.lanes / 2; with > 0; with /= 2)
        x = fmaxf(x, __shfl_xor_sync(all_lanes, x, (int)with));
    return x;
}

/* Which lines this thread's team does: first, then every `step`-th. */
struct line_range {
    unsigned first, step;
};

static __device__ __forceinline__ struct line_range team_lines(unsigned lanes)
{
    unsigned per_block = BLOCK / lanes;
    return {blockIdx.x * per_block + threadIdx.x / lanes, gridDim.x * per_block};
}

static inline unsigned lanes_for(int64_t size)
{
    return size <= LINE_OF_WARP ? (unsigned)WARP : (unsigned)BLOCK;
}

/* Who keeps a line of `size` elements, in groups of `width`, in registers. */
struct keeping {
    unsigned lanes, block; /* threads of a line; of a block */
    bool few;              /* KEPT_FEW floats a thread, else KEPT_MANY */
};

static inline struct keeping keeping_of(int64_t size, int width)
{
    int64_t many = KEPT_MANY(width);
    if (size > WARP * many) {
        unsigned lanes = size > BLOCK * many ? (unsigned)WIDE_BLOCK : (unsigned)BLOCK;
        return {lanes, lanes, size <= BLOCK * (int64_t)KEPT_FEW};
    }
    unsigned lanes = power_of_two_from(size / width), warp = WARP;
    return {lanes < warp ? lanes : warp, BLOCK, size <= (int64_t)WARP * KEPT_FEW};
}

/* Blocks for tasks of so many bytes that are read twice: what all of them have read fits in half of
 * the second cache, unless that is fewer blocks than two per multiprocessor. */
static inline struct cuda_grid grid_in_cache(const struct kernel_query *q, int64_t tasks,
                                             int64_t bytes)
{
    const struct device_properties *of = &q->device->properties;
    int64_t units = of->units > 0 ? of->units : 1, fit = (int64_t)of->cache_bytes / 2 / bytes;
    int64_t limit = fit < 2 * units ? 2 * units : fit > 12 * units ? 12 * units : fit;
    return cuda_size((unsigned)(tasks < limit ? tasks : limit));
}

/* Plain floats of one type without posts. */
static inline enum status lines_supported(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    return floats_supported(q, 0, q->in_count, why);
}

#endif
