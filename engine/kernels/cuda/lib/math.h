/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of engine/ops/lib/chain.h and the activations of epilogues in single precision, on the
 * device. Comparisons are written so that NaN stays NaN; the library's exact functions are used,
 * not the approximations behind -use_fast_math. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MATH_H
#define ENGINE_KERNELS_CUDA_LIB_MATH_H

#include "engine/kernels/cuda/lib/kernel.h"

static __device__ __forceinline__ float math_clip(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static __device__ __forceinline__ float math_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float math_gelu_erf(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
}

static __device__ __forceinline__ float math_gelu_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x)));
}

static __device__ __forceinline__ float math_softplus(float x)
{
    return (x > 0 ? x : x == x ? 0.0f : x) + log1pf(expf(-fabsf(x)));
}

static __device__ __forceinline__ float math_unit(float x, float alpha, float width)
{
    return x < 0 ? alpha * expm1f(x / width) : x;
}

static __device__ __forceinline__ float math_shrink(float x, float bias, float limit)
{
    if (x < -limit)
        return x + bias;
    return x > limit ? x - bias : x == x ? 0.0f : x;
}

static __device__ __forceinline__ float math_sign(float x)
{
    return x != x ? x : (float)((x > 0) - (x < 0));
}

static __device__ __forceinline__ float math_binary(int code, float a, float b)
{
    switch (code) {
    case CHAIN_ADD:
        return a + b;
    case CHAIN_DIV:
        return a / b;
    case CHAIN_MAX:
        return a != a || a > b ? a : b;
    case CHAIN_MIN:
        return a != a || a < b ? a : b;
    case CHAIN_MUL:
        return a * b;
    case CHAIN_POW:
        return powf(a, b);
    case CHAIN_PRELU:
        return a < 0 ? a * b : a;
    default:
        return a - b; /* CHAIN_SUB */
    }
}

/* Steps without a call of the library. */
static __device__ __forceinline__ float math_line(int code, float x, float p, float q)
{
    switch (code) {
    case CHAIN_ABS:
        return fabsf(x);
    case CHAIN_CEIL:
        return ceilf(x);
    case CHAIN_CLIP:
        return math_clip(x, p, q);
    case CHAIN_CUBE:
        return x * x * x;
    case CHAIN_FLOOR:
        return floorf(x);
    case CHAIN_HARD_SIGMOID:
        return math_clip(p * x + q, 0, 1);
    case CHAIN_HARD_SWISH:
        return x * math_clip(x / 6 + 0.5f, 0, 1);
    case CHAIN_LEAKY_RELU:
        return x < 0 ? p * x : x;
    case CHAIN_NEG:
        return -x;
    case CHAIN_RECIPROCAL:
        return 1 / x;
    case CHAIN_RELU:
        return x < 0 ? 0 : x;
    case CHAIN_ROUND:
        return rintf(x);
    case CHAIN_SCALE:
        return p * x;
    case CHAIN_SHRINK:
        return math_shrink(x, p, q);
    case CHAIN_SIGN:
        return math_sign(x);
    case CHAIN_SOFTSIGN:
        return x / (1 + fabsf(x));
    case CHAIN_SQRT:
        return sqrtf(x);
    case CHAIN_SQUARE:
        return x * x;
    case CHAIN_THRESHOLD:
        return x > p ? x : 0;
    default:
        return x; /* CHAIN_COPY */
    }
}

static __device__ __forceinline__ float math_unary(int code, float x, float p, float q)
{
    switch (code) {
    case CHAIN_CELU:
        return math_unit(x, p, p);
    case CHAIN_COS:
        return cosf(x);
    case CHAIN_ELU:
        return math_unit(x, p, 1);
    case CHAIN_ERF:
        return erff(x);
    case CHAIN_EXP:
        return expf(x);
    case CHAIN_GELU_ERF:
        return math_gelu_erf(x);
    case CHAIN_GELU_TANH:
        return math_gelu_tanh(x);
    case CHAIN_LOG:
        return logf(x);
    case CHAIN_MISH:
        return x * tanhf(math_softplus(x));
    case CHAIN_SELU:
        return q * math_unit(x, p, 1);
    case CHAIN_SIGMOID:
        return math_sigmoid(x);
    case CHAIN_SILU:
        return x / (1.0f + expf(-x));
    case CHAIN_SIN:
        return sinf(x);
    case CHAIN_SOFTPLUS:
        return math_softplus(x);
    case CHAIN_TANH:
        return tanhf(x);
    default:
        return math_line(code, x, p, q);
    }
}

static __device__ __forceinline__ float math_act(int act, float x, float a, float b)
{
    switch (act) {
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_CLIP:
        return math_clip(x, a, b);
    case ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ACT_SIGMOID:
        return math_sigmoid(x);
    case ACT_TANH:
        return tanhf(x);
    case ACT_GELU_ERF:
        return math_gelu_erf(x);
    case ACT_GELU_TANH:
        return math_gelu_tanh(x);
    case ACT_SILU:
        return x / (1.0f + expf(-x));
    case ACT_HARD_SIGMOID:
        return math_clip(a * x + b, 0, 1);
    case ACT_HARD_SWISH:
        return x * math_clip(x / 6 + 0.5f, 0, 1);
    case ACT_ELU:
        return math_unit(x, a, 1);
    default:
        return x;
    }
}

#endif
