/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of 4 bits as floats and, for CPUs that multiply pairs of bf16, as such pairs. */
#ifndef ENGINE_KERNELS_LIB_SIMD_CODES_H
#define ENGINE_KERNELS_LIB_SIMD_CODES_H

#include "engine/kernels/lib/simd_dot.h"

#if defined(__AVX512F__)

/* clang-format off */
/* The lowest four bits of each lane, less 8. */
SIMD_INLINE vf vf_from_code(vi v)
{ return _mm512_permutexvar_ps(v, _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1,
                                                 0, 1, 2, 3, 4, 5, 6, 7)); }
/* For each 16 bits what a table of 2 VL such numbers has in the place of their lowest five. */
SIMD_INLINE vi vi_words_at(vi table, vi v) { return _mm512_permutexvar_epi16(v, table); }
/* vf_dot_bf16 with the same pair in all lanes of b. */
SIMD_INLINE vf vf_dot_bf16_pair(vf sum, vf a, const uint16_t *b)
{
    const struct { char bytes[4]; } *pair = (const void *)b;
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(*pair));
    return sum;
}
/* clang-format on */

#elif defined(__AVX2__)

SIMD_INLINE vf vf_from_code(vi v)
{
    return vf_from_vi(vi_sub(vi_and(v, vi_set1(15)), vi_set1(8)));
}

#else

SIMD_INLINE vf vf_from_code(vi v)
{
    return (vf)((v & 15) - 8);
}

#endif

#endif
