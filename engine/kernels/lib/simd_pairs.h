/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of pairs that lie side by side in memory: real and imaginary parts, x and y. */
#ifndef ENGINE_KERNELS_LIB_SIMD_PAIRS_H
#define ENGINE_KERNELS_LIB_SIMD_PAIRS_H

#include "engine/kernels/lib/simd.h"

/* vf_split: the first and the second elements of VL pairs at p; vf_merge: the other way round. */
#if defined(__AVX512F__)

SIMD_INLINE void vf_split(const float *p, vf *first, vf *second)
{
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    vf a = vf_load(p), b = vf_load(p + VL);
    *first = _mm512_permutex2var_ps(a, even, b);
    *second = _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
}

SIMD_INLINE void vf_merge(float *p, vf first, vf second)
{
    const vi low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    vf_store(p, _mm512_permutex2var_ps(first, low, second));
    vf_store(p + VL,
             _mm512_permutex2var_ps(first, _mm512_add_epi32(low, _mm512_set1_epi32(8)), second));
}

#elif defined(__AVX2__)

SIMD_INLINE void vf_split(const float *p, vf *first, vf *second)
{
    vf a = vf_load(p), b = vf_load(p + VL);
    vf low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31);
    *first = _mm256_shuffle_ps(low, high, 0x88);
    *second = _mm256_shuffle_ps(low, high, 0xdd);
}

SIMD_INLINE void vf_merge(float *p, vf first, vf second)
{
    vf low = _mm256_unpacklo_ps(first, second), high = _mm256_unpackhi_ps(first, second);
    vf_store(p, _mm256_permute2f128_ps(low, high, 0x20));
    vf_store(p + VL, _mm256_permute2f128_ps(low, high, 0x31));
}

#else

SIMD_INLINE void vf_split(const float *p, vf *first, vf *second)
{
    *first = p[0];
    *second = p[1];
}

SIMD_INLINE void vf_merge(float *p, vf first, vf second)
{
    p[0] = first;
    p[1] = second;
}

#endif

#endif
