/* SPDX-License-Identifier: Apache-2.0
 *
 * Products whose left factor has few rows (a step of a recurrent network). The threads of a warp
 * have 32 neighbouring columns, of `count` bands each (gates), and `rows` rows, all sums in
 * registers. The warps of a block share the rows of the left factor and, where these are few, the
 * depth; parts of a sum then meet in shared memory. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SKINNY_H
#define ENGINE_KERNELS_CUDA_LIB_SKINNY_H

#include "engine/kernels/cuda/lib/query.h"

enum { SKINNY_WARPS = 8, SKINNY_ROWS = 4 };

/* Warps of a block with rows of their own, when each has `rows`: a power of two. */
static inline unsigned skinny_row_warps(int64_t all, unsigned rows)
{
    unsigned warps = power_of_two_from(div_up(all, rows));
    return warps < SKINNY_WARPS ? warps : (unsigned)SKINNY_WARPS;
}

static inline struct cuda_grid skinny_grid(int64_t columns, int64_t all, unsigned rows,
                                           unsigned z = 1)
{
    return cuda_size((unsigned)div_up(columns, WARP),
                     (unsigned)div_up(all, rows * skinny_row_warps(all, rows)), z);
}

template <int count, int rows> struct skinny_sums {
    float v[rows][count];
};

struct skinny_place {
    unsigned column, row; /* of the thread; its first row */
    unsigned warp, part, row_warps;
};

static __device__ __forceinline__ struct skinny_place skinny_place_of(unsigned row_warps,
                                                                      unsigned rows)
{
    unsigned warp = threadIdx.x / WARP, mine = warp % row_warps;
    return {blockIdx.x * WARP + threadIdx.x % WARP, (blockIdx.y * row_warps + mine) * rows, warp,
            warp / row_warps, row_warps};
}

/* Adds left[rows][depth] right[depth][...]: `right` points to the thread's column of the first
 * band, `width` is from one row of it to the next, `band` from one band to the next. */
template <int count, int rows, class left_element, class element>
static __device__ __forceinline__ void
skinny_add(const struct skinny_place &p, const left_element *const *left, const element *right,
           unsigned width, unsigned band, unsigned depth, struct skinny_sums<count, rows> &sums)
{
    unsigned parts = SKINNY_WARPS / p.row_warps;
#pragma unroll 4
    for (unsigned d = p.part; d < depth; d += parts) {
        float weight[count];
        for (int g = 0; g < count; g++)
            weight[g] = to_float(right[(size_t)d * width + g * band]);
        for (int i = 0; i < rows; i++)
            for (int g = 0; g < count; g++)
                sums.v[i][g] = fmaf(to_float(left[i][d]), weight[g], sums.v[i][g]);
    }
}

/* All threads of the block call it. True for those that have the whole sums then. */
template <int count, int rows>
static __device__ __forceinline__ bool skinny_meet(const struct skinny_place &p,
                                                   struct skinny_sums<count, rows> &sums)
{
    __shared__ float all[SKINNY_WARPS][rows][count][WARP];
    unsigned lane = threadIdx.x % WARP;
    for (int i = 0; i < rows; i++)
        for (int g = 0; g < count; g++)
            all[p.warp][i][g][lane] = sums.v[i][g];
    __syncthreads();
    for (unsigned w = p.warp + p.row_warps; p.part == 0 && w < SKINNY_WARPS; w += p.row_warps)
        for (int i = 0; i < rows; i++)
            for (int g = 0; g < count; g++)
                sums.v[i][g] += all[w][i][g][lane];
    return p.part == 0;
}

/* The second row's sums become the first's, and so on, for a loop that is in the code once. */
template <int count, int rows>
static __device__ __forceinline__ void skinny_next_row(struct skinny_sums<count, rows> &sums)
{
#pragma unroll
    for (int i = 0; i + 1 < rows; i++)
#pragma unroll
        for (int g = 0; g < count; g++)
            sums.v[i][g] = sums.v[i + 1][g];
}

#endif
