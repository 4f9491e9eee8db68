/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean and variance of a contiguous row. Sums go up in pieces that end in a double, so that a long
 * row loses no more than a short one; the variance takes a second sweep over what is in the cache,
 * which is exact where sums of squares would cancel.
 */
#ifndef ENGINE_KERNELS_LIB_ROW_MOMENTS_H
#define ENGINE_KERNELS_LIB_ROW_MOMENTS_H

#include "engine/kernels/lib/simd.h"

enum { MOMENT_PIECE = 512 * VL }; /* 128 terms per lane of four sums */

/* Sum of (x - centre)^power over n <= MOMENT_PIECE elements; power is the constant 1 or 2. */
SIMD_INLINE float row_piece(const float *x, int64_t n, float centre, int power)
{
    vf c = vf_set1(centre), s0 = vf_zero(), s1 = vf_zero(), s2 = vf_zero(), s3 = vf_zero();
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        vf d0 = vf_sub(vf_load(x + i), c), d1 = vf_sub(vf_load(x + i + VL), c);
        vf d2 = vf_sub(vf_load(x + i + 2 * VL), c), d3 = vf_sub(vf_load(x + i + 3 * VL), c);
        s0 = power == 1 ? vf_add(s0, d0) : vf_fma(d0, d0, s0);
        s1 = power == 1 ? vf_add(s1, d1) : vf_fma(d1, d1, s1);
        s2 = power == 1 ? vf_add(s2, d2) : vf_fma(d2, d2, s2);
        s3 = power == 1 ? vf_add(s3, d3) : vf_fma(d3, d3, s3);
    }
    for (; i < n; i += VL) {
        vm rest = vm_first(n - i);
        vf d = vf_select(rest, vf_sub(vf_load_m(x + i, rest), c), vf_zero());
        s0 = power == 1 ? vf_add(s0, d) : vf_fma(d, d, s0);
    }
    return vf_sum(vf_add(vf_add(s0, s1), vf_add(s2, s3)));
}

/* Mean of (x - centre)^power. */
SIMD_INLINE float row_moment(const float *x, int64_t n, float centre, int power)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += MOMENT_PIECE)
        sum += (double)row_piece(x + i, n - i < MOMENT_PIECE ? n - i : MOMENT_PIECE, centre, power);
    return (float)(sum / (double)n);
}

#endif
