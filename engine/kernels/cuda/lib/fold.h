/* SPDX-License-Identifier: Apache-2.0
 *
 * Folding many floats to one: over the registers of a thread, the lanes of a warp, a block. Which
 * fold it is, is known at run time; all threads take the same branch, once for a few terms. */
#ifndef ENGINE_KERNELS_CUDA_LIB_FOLD_H
#define ENGINE_KERNELS_CUDA_LIB_FOLD_H

#include "engine/kernels/cuda/lib/kernel.h"

enum fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_EXP, FOLD_MAX, FOLD_MIN, FOLD_PROD };

/* What changes nothing, as a term and as a result. */
static __device__ __forceinline__ float fold_nothing(int fold)
{
    return fold == FOLD_MAX ? -INFINITY : fold == FOLD_MIN ? INFINITY : fold == FOLD_PROD ? 1 : 0;
}

/* NaN stays: a comparison with it is false. */
static __device__ __forceinline__ float fold_join(int fold, float a, float b)
{
    switch (fold) {
    case FOLD_MAX:
        return a != a || a > b ? a : b;
    case FOLD_MIN:
        return a != a || a < b ? a : b;
    case FOLD_PROD:
        return a * b;
    default:
        return a + b;
    }
}

static __device__ __forceinline__ float fold_term(int fold, float x, float shift)
{
    return fold == FOLD_ABS      ? fabsf(x)
           : fold == FOLD_SQUARE ? x * x
           : fold == FOLD_EXP    ? expf(x - shift)
                                 : x;
}

/* `n` terms, a power of two, that stand `step` apart, by pairs. */
template <int n, int step>
static __device__ __forceinline__ float fold_pairs(int fold, const float *v, float shift)
{
    const int half = n == 1 ? 1 : n / 2;
    if (n == 1)
        return fold_term(fold, *v, shift);
    return fold_join(fold, fold_pairs<half, step>(fold, v, shift),
                     fold_pairs<half, step>(fold, v + half * step, shift));
}

/* pieces[e] takes in terms e, e + width ... : one branch for all of them. */
template <int n, int width>
static __device__ __forceinline__ void fold_in(int fold, float *pieces, const float *v,
                                               const float *shift)
{
#define FOLD_CASE(name)                                                                            \
    case name:                                                                                     \
        _Pragma("unroll") for (int e = 0; e < width; e++) pieces[e] =                              \
            fold_join(name, pieces[e], fold_pairs<n, width>(name, v + e, shift[e]));               \
        break;
    switch (fold) {
        FOLD_CASE(FOLD_SUM)
        FOLD_CASE(FOLD_ABS)
        FOLD_CASE(FOLD_SQUARE)
        FOLD_CASE(FOLD_EXP)
        FOLD_CASE(FOLD_MAX)
        FOLD_CASE(FOLD_MIN)
        FOLD_CASE(FOLD_PROD)
    }
#undef FOLD_CASE
}

/* Over `lanes` neighbouring threads of a warp, a power of two; all get the result. */
static __device__ __forceinline__ float fold_lanes(int fold, float x, unsigned lanes)
{
    for (unsigned with = lanes / 2; with > 0; with /= 2)
        x = fold_join(fold, x, __shfl_xor_sync(all_lanes, x, (int)with));
    return x;
}

/* Over a block. part: memory for a float per warp, the call's alone. */
static __device__ __forceinline__ float fold_block(int fold, float x, float *part)
{
    unsigned lane = threadIdx.x % WARP;
    x = fold_lanes(fold, x, WARP);
    if (lane == 0)
        part[threadIdx.x / WARP] = x;
    __syncthreads();
    x = fold_lanes(fold, lane < BLOCK / WARP ? part[lane] : fold_nothing(fold), WARP);
    __syncthreads();
    return x;
}

static __device__ __forceinline__ float fold_team(int fold, float x, unsigned lanes, float *part)
{
    return lanes == BLOCK ? fold_block(fold, x, part) : fold_lanes(fold, x, lanes);
}

#endif
