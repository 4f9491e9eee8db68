/* SPDX-License-Identifier: Apache-2.0
 *
 * The words in which the elementwise functions are written (engine/graph/function.h), for one float
 * on the device: what engine/kernels/lib/simd.h and simd_math.h have for a vector. The library's
 * exact functions are used, not the approximations behind -use_fast_math. Sine, cosine and power
 * are long and rare: they are called, where other functions stand in a kernel for each of up to
 * eight values. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MATH_H
#define ENGINE_KERNELS_CUDA_LIB_MATH_H

#include "engine/kernels/cuda/lib/kernel.h"

typedef float vf;
typedef bool vm;

#define SIMD_INLINE static __device__ __forceinline__

/* clang-format off */
SIMD_INLINE vf vf_zero(void) { return 0; }
SIMD_INLINE vf vf_set1(float x) { return x; }
SIMD_INLINE vf vf_add(vf a, vf b) { return a + b; }
SIMD_INLINE vf vf_sub(vf a, vf b) { return a - b; }
SIMD_INLINE vf vf_mul(vf a, vf b) { return a * b; }
SIMD_INLINE vf vf_div(vf a, vf b) { return a / b; }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
SIMD_INLINE vf vf_min(vf a, vf b) { return a < b ? a : b; } /* b where either is NaN */
SIMD_INLINE vf vf_max(vf a, vf b) { return a > b ? a : b; }
SIMD_INLINE vf vf_sqrt(vf a) { return sqrtf(a); }
SIMD_INLINE vf vf_abs(vf a) { return fabsf(a); }
SIMD_INLINE vf vf_neg(vf a) { return -a; }
SIMD_INLINE vf vf_round(vf a) { return rintf(a); }
SIMD_INLINE vf vf_floor(vf a) { return floorf(a); }
SIMD_INLINE vf vf_ceil(vf a) { return ceilf(a); }
SIMD_INLINE vm vf_lt(vf a, vf b) { return a < b; }
SIMD_INLINE vm vf_is_nan(vf a) { return a != a; }
SIMD_INLINE vf vf_select(vm m, vf yes, vf no) { return m ? yes : no; }
SIMD_INLINE vf vf_exp(vf x) { return expf(x); }
SIMD_INLINE vf vf_exp_of_minus(vf x) { return expf(-x); }
SIMD_INLINE vf vf_expm1(vf x) { return expm1f(x); }
SIMD_INLINE vf vf_log(vf x) { return logf(x); }
SIMD_INLINE vf vf_log1p(vf x) { return log1pf(x); }
SIMD_INLINE vf vf_tanh(vf x) { return tanhf(x); }
SIMD_INLINE vf vf_erf(vf x) { return erff(x); }
static __device__ OUT_OF_LINE vf vf_sin(vf x) { return sinf(x); }
static __device__ OUT_OF_LINE vf vf_cos(vf x) { return cosf(x); }
static __device__ OUT_OF_LINE vf vf_pow(vf x, vf y) { return powf(x, y); }
SIMD_INLINE vf vf_clamp(vf x, float low, float high) { return vf_min(high, vf_max(low, x)); }
/* clang-format on */

#define VECTOR_WORDS
#include "engine/graph/function_forms.h"

static __device__ OUT_OF_LINE float activation_of(float x, int act, float a, float b)
{
    return vf_act(x, (enum function)act, a, b);
}

/* Nearly always ReLU or none. For the others the values take turns, so that the functions are in
 * the code once, and the values in registers. */
template <int width>
static __device__ __forceinline__ void activate_group(struct group<width> &x, int act, float a,
                                                      float b)
{
    if (act == FN_COPY)
        return;
    if (act == FN_RELU) {
#pragma unroll
        for (int i = 0; i < width; i++)
            x.v[i] = max_or_nan(x.v[i], 0.0f);
        return;
    }
#pragma unroll 1
    for (int turn = 0; turn < width; turn++) {
        float last = activation_of(x.v[0], act, a, b);
#pragma unroll
        for (int i = 0; i + 1 < width; i++)
            x.v[i] = x.v[i + 1];
        x.v[width - 1] = last;
    }
}

#endif
