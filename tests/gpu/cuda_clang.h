/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA C for clang without a toolkit: put in front of a .cu file it declares what the language has
 * built in and the project's kernels use, so that clang checks device code for any chip that it
 * knows, whatever toolkit is installed (tools/check_cuda.sh). Nothing is linked. As with
 * host/cuda_host.h, a new need is a compile error. */
#ifndef TESTS_GPU_CUDA_CLANG_H
#define TESTS_GPU_CUDA_CLANG_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__             __attribute__((global))
#define __device__             __attribute__((device))
#define __host__               __attribute__((host))
#define __shared__             __attribute__((shared))
#define __forceinline__        __inline__ __attribute__((always_inline))
#define __noinline__           __attribute__((noinline))
#define __align__(bytes)       __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
/* A kernel's address means something on the host only. */
#define KERNEL_DEVICE static __inline__ __attribute__((device))

/* ---- vectors ---- */

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
};

struct float2 {
    float x, y;
} __align__(8);

struct float4 {
    float x, y, z, w;
} __align__(16);

struct uint4 {
    unsigned x, y, z, w;
} __align__(16);

struct uint2 {
    unsigned x, y;
} __align__(8);

KERNEL_DEVICE struct float2 make_float2(float x, float y)
{
    return {x, y};
}

KERNEL_DEVICE struct float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

KERNEL_DEVICE struct uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

KERNEL_DEVICE struct uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

#include <__clang_cuda_builtin_vars.h>

/* ---- functions ---- */

extern "C" {
__device__ void __syncthreads(void);
__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ unsigned __ballot_sync(unsigned mask, int predicate);
__device__ unsigned __umulhi(unsigned a, unsigned b);
__device__ float __fmul_rn(float a, float b);
__device__ float __fdiv_rn(float a, float b);
__device__ int __float_as_int(float x);
__device__ float __int_as_float(int bits);
__device__ long long __double_as_longlong(double x);
__device__ double __longlong_as_double(long long bits);
__device__ int __popc(unsigned bits);
__device__ int __ffs(int bits);
__device__ size_t __cvta_generic_to_shared(const void *at);
}

/* The library's, each beside the host's of the same name. */
#define OF_ONE(name) extern "C" __device__ float name(float)
#define OF_TWO(name) extern "C" __device__ float name(float, float)
OF_ONE(ceilf);
OF_ONE(cosf);
OF_ONE(erff);
OF_ONE(expf);
OF_ONE(exp2f);
OF_ONE(expm1f);
OF_ONE(fabsf);
OF_ONE(floorf);
OF_ONE(log1pf);
OF_ONE(logf);
OF_ONE(rintf);
OF_ONE(roundf);
OF_ONE(rsqrtf);
OF_ONE(sinf);
OF_ONE(sqrtf);
OF_ONE(tanhf);
OF_TWO(fmaxf);
OF_TWO(fminf);
OF_TWO(powf);
extern "C" __device__ float fmaf(float, float, float);
extern "C" __device__ double fma(double, double, double);
extern "C" __device__ double asin(double);
extern "C" __device__ double atan(double);
extern "C" __device__ double cos(double);
extern "C" __device__ double sin(double);
extern "C" __device__ double sqrt(double);

template <class T> __device__ T __shfl_sync(unsigned mask, T value, int from);
template <class T> __device__ T __shfl_xor_sync(unsigned mask, T value, int with);
template <class T> __device__ T __shfl_up_sync(unsigned mask, T value, int by);
template <class T> __device__ T __shfl_down_sync(unsigned mask, T value, int by);
template <class T> __device__ T __ldg(const T *at);
template <class T> __device__ T atomicAdd(T *at, T value);
template <class T> __device__ T atomicMax(T *at, T value);
template <class T> __device__ T atomicOr(T *at, T value);
template <class T> __device__ T atomicCAS(T *at, T expected, T value);
template <class T> __device__ T min(T a, T b);
template <class T> __device__ T max(T a, T b);

#undef OF_ONE
#undef OF_TWO
#undef KERNEL_DEVICE
#endif
