/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats in memory that has 32 or 16 bits for each: `bf16` is a constant wherever these are
 * inlined, so that a kernel is written once for both and computes in f32. Element `at` of p is the
 * first; vm says how many lanes there are. What is written as bf16 and is below its normal numbers
 * may become 0. */
#ifndef ENGINE_KERNELS_LIB_SIMD_FLOATS_H
#define ENGINE_KERNELS_LIB_SIMD_FLOATS_H

#include <string.h>

#include "engine/kernels/lib/simd_dot.h"

SIMD_INLINE vf vf_read(const void *p, int64_t at, bool bf16)
{
    return bf16 ? vf_load_bf16((const uint16_t *)p + at) : vf_load((const float *)p + at);
}

SIMD_INLINE vf vf_read_m(const void *p, int64_t at, vm m, bool bf16)
{
    return bf16 ? vf_load_bf16_m((const uint16_t *)p + at, m) : vf_load_m((const float *)p + at, m);
}

SIMD_INLINE void vf_write(void *p, int64_t at, vf v, bool bf16)
{
    if (bf16)
        vf_store_bf16_fast((uint16_t *)p + at, v);
    else
        vf_store((float *)p + at, v);
}

SIMD_INLINE void vf_write_m(void *p, int64_t at, vm m, vf v, bool bf16)
{
    if (bf16)
        vf_store_bf16_fast_m((uint16_t *)p + at, m, v);
    else
        vf_store_m((float *)p + at, m, v);
}

/* Inline, unlike bfloat_to_float: a call would spill all vectors of a loop. */
SIMD_INLINE float float_read(const void *p, int64_t at, bool bf16)
{
    if (!bf16)
        return ((const float *)p)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)p)[at] << 16;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

SIMD_INLINE void float_write(void *p, int64_t at, float x, bool bf16)
{
    if (bf16)
        ((uint16_t *)p)[at] = bfloat_from_float(x);
    else
        ((float *)p)[at] = x;
}

/* Where element `at` of p is; out_at of what is written. */
SIMD_INLINE const void *float_at(const void *p, int64_t at, bool bf16)
{
    return (const char *)p + at * (bf16 ? 2 : 4);
}

SIMD_INLINE void *out_at(void *p, int64_t at, bool bf16)
{
    return (char *)p + at * (bf16 ? 2 : 4);
}

#endif
