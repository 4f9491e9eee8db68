/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean and sum of squared deviations of many floats in one sweep: of a few in registers exactly, by
 * two passes, then joined (Chan, Golub and LeVeque 1979), which loses nothing to a mean that is
 * large beside the deviation. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MOMENTS_H
#define ENGINE_KERNELS_CUDA_LIB_MOMENTS_H

#include "engine/kernels/cuda/lib/lines.h"

struct moments {
    float count, mean, square; /* square: the sum of squared deviations from the mean */
};

static __device__ __forceinline__ struct moments moments_join(const struct moments &a,
                                                              const struct moments &b)
{
    float count = a.count + b.count, part = count > 0 ? b.count / count : 0, by = b.mean - a.mean;
    return {count, a.mean + by * part, a.square + b.square + by * by * a.count * part};
}

/* The first `n` of v[0 .. limit); the others are 0. */
template <int limit>
static __device__ __forceinline__ struct moments moments_of(const float *v, int n)
{
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < limit; i++)
        sum += v[i];
    float mean = n > 0 ? sum / (float)n : 0;
#pragma unroll
    for (int i = 0; i < limit; i++) {
        float by = i < n ? v[i] - mean : 0;
        square += by * by;
    }
    return {(float)n, mean, square};
}

/* All threads get the result; `count` is that of all of them. */
static __device__ __forceinline__ struct moments
moments_of_team(const struct line_team &t, const struct moments &m, float count)
{
    float mean = team_sum(t, m.count / count * m.mean), by = m.mean - mean;
    return {count, mean, team_sum(t, m.square + m.count * by * by)};
}

#endif
