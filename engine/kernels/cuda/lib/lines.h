/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that work along lines (rows) of plain floats: a warp per short line, a block per long
 * one, four elements at a time where all lines begin at a multiple of four. What a line's first
 * sweep reads is in the first or second cache for the next. */
#ifndef ENGINE_KERNELS_CUDA_LIB_LINES_H
#define ENGINE_KERNELS_CUDA_LIB_LINES_H

#include "engine/kernels/cuda/lib/query.h"

enum { LINE_OF_WARP = 1024 }; /* longest line that one warp does */

/* The threads that share a line: `lane` of `lanes`. */
struct line_team {
    unsigned lane, lanes;
    float *part; /* shared memory for sums over a block; a warp needs none */
};

static __device__ __forceinline__ float team_sum(const struct line_team &t, float x)
{
    return t.lanes == WARP ? warp_sum(x) : block_sum(x, t.part);
}

static __device__ __forceinline__ float team_max(const struct line_team &t, float x)
{
    return t.lanes == WARP ? warp_max(x) : block_max(x, t.part);
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

static inline struct cuda_grid grid_of_lines(const struct kernel_query *q, int64_t lines,
                                             unsigned lanes)
{
    return grid_for(q, lines * lanes);
}

/* Plain floats of one type without posts. */
static inline enum status lines_supported(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    return floats_supported(q, 0, q->in_count, why);
}

#endif
