/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors and arithmetic that CUDA C has built in, as plain C++. Part of cuda_host.h. */
#ifndef TESTS_GPU_HOST_CUDA_ARITHMETIC_H
#define TESTS_GPU_HOST_CUDA_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "engine/graph/tensor.h"
}

struct float2 {
    float x, y;
};

struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));

struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16)));

struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8)));

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* Never joined with another operation into one. */
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline size_t __cvta_generic_to_shared(const void *at)
{
    return (size_t)at;
}

static inline int __float_as_int(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double __longlong_as_double(long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline float __int_as_float(int bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* What engine/kernels/cuda/lib/floats.h has as instructions. */
#define FLOATS_OF_HOST
static inline float half_bits_to_float(uint16_t bits)
{
    return half_to_float(bits);
}

static inline float max_or_nan(float a, float b)
{
    return a != a || a > b ? a : b;
}

template <class element> static inline unsigned max_or_nan_of_pairs(element, unsigned a, unsigned b)
{
    unsigned larger = 0;
    for (int k = 0; k < 2; k++) {
        element e;
        float_put(&e, max_or_nan(to_float(element{(uint16_t)(a >> 16 * k)}),
                                 to_float(element{(uint16_t)(b >> 16 * k)})));
        larger |= (unsigned)e.bits << 16 * k;
    }
    return larger;
}

static inline uint16_t half_bits_of_float(float x)
{
    return half_from_float(x);
}

static inline uint16_t bfloat_bits_of_float(float x)
{
    return bfloat_from_float(x);
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

template <class T> static inline T __ldg(const T *at)
{
    return *at;
}

template <class T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}

template <class T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}

#endif
