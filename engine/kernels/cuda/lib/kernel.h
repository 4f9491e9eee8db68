/* SPDX-License-Identifier: Apache-2.0
 *
 * What every .cu file starts with. A file holds one kernel of ridge: device code first, then the
 * hooks of engine/graph/kernel.h. It is compiled by nvcc, by clang, and as plain C++ for tests
 * (tests/gpu/host/), so:
 *   - a __global__ function takes one argument, a struct by value, at most 4 KiB;
 *   - it is launched by LAUNCH, never by <<<>>>, and begins with KERNEL_BEGIN();
 *   - memory that the launch sizes is declared by SHARED_MEMORY.
 * The C++ in it is C with overloads and template parameters: the width of a loop that wants it as a
 * constant, and the type of floats in memory (lib/floats.h).
 */
#ifndef ENGINE_KERNELS_CUDA_LIB_KERNEL_H
#define ENGINE_KERNELS_CUDA_LIB_KERNEL_H

extern "C" {
#include "engine/kernels/cuda/lib/cuda.h"
}

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cuda/lib/floats.h"

/* OUT_OF_LINE: a function that many places call and whose body is large. */
#ifndef KERNEL_ADDRESS
#define OUT_OF_LINE         __noinline__
#define KERNEL_ADDRESS(...) ((const void *)(__VA_ARGS__))
#define SHARED_MEMORY(type, name)                                                                  \
    extern __shared__ __align__(16) unsigned char shared_memory_[];                                \
    type *name = (type *)shared_memory_
#endif

/* The first statement of each kernel. From sm_90 on blocks come to their places while the kernel
 * before still runs, and wait here until all that it did is done (CUDA C++ Programming Guide,
 * "Programmatic Dependent Launch"); whoever comes next may come as early. Every thread waits before
 * it touches memory: then what follows a kernel follows all that came before it, too. */
#if !defined(KERNEL_BEGIN) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define KERNEL_BEGIN()                                                                             \
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory")
#elif !defined(KERNEL_BEGIN)
#define KERNEL_BEGIN() (void)0
#endif

/* LAUNCH(kernel<4>, grid, block, shared_bytes, &argument, args); argument is copied. A grid of no
 * blocks is not launched. */
#define LAUNCH(kernel, grid_size, block_size, bytes, parameters, args)                             \
    LAUNCH_AS(true, kernel, grid_size, block_size, bytes, parameters, args)

/* early: the kernel has KERNEL_BEGIN. */
#define LAUNCH_AS(early, kernel, grid_size, block_size, bytes, parameters, args)                   \
    do {                                                                                           \
        struct cuda_launch launch_ = {#kernel, KERNEL_ADDRESS(kernel), grid_size, block_size,      \
                                      bytes,   (void *)(parameters),   early};                     \
        cuda_launch(&launch_, args);                                                               \
    } while (0)

#define REFUSE(why, ...) cuda_host->refuse(why, STATUS_UNSUPPORTED, __VA_ARGS__)

/* CUDA_KERNEL(softmax) = {CUDA_NAME(softmax), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)}; the hooks
 * in their order. CUDA_HOOK(launch) is .launch = launch: where several files are compiled as one,
 * each is in a namespace, and its struct kernel_state is another type than the one that struct
 * kernel names and never looks into. */
#define CUDA_KERNEL(symbol)                                                                        \
    extern "C" {                                                                                   \
    extern const struct kernel kernel_cuda_##symbol;                                               \
    }                                                                                              \
    const struct kernel kernel_cuda_##symbol
#define CUDA_NAME(symbol) .name = "cuda_" #symbol, .provider = "cuda", .device = "cuda"
#define CUDA_HOOK(hook)   .hook = (decltype(kernel::hook))hook
#define CUDA_PLAN         .state_size = sizeof(struct kernel_state), CUDA_HOOK(plan)

enum { WARP = 32, BLOCK = 256 };

static const unsigned all_lanes = 0xffffffffu;

/* ---- sizes of launches ---- */

static inline struct cuda_grid cuda_size(unsigned x, unsigned y = 1, unsigned z = 1)
{
    return {x, y, z};
}

static inline int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Blocks for `work` items that loop with the grid's stride: none for none, else enough to fill the
 * device a few times over, and no more, so that a block's start is paid for. 24 a multiprocessor
 * are whole waves where 8, 6, 4, 3 or 2 blocks share it: with 8 a kernel of 6 would leave it to 2
 * for a quarter of the work. */
static inline struct cuda_grid grid_for(const struct kernel_query *q, int64_t work)
{
    int64_t units = q->device->properties.units, limit = 24 * (units > 0 ? units : 1);
    int64_t blocks = div_up(work, BLOCK);
    return cuda_size((unsigned)(blocks < limit ? blocks : limit));
}

/* Indices are 32 bits wide in device code. */
static inline bool fits_index(const struct desc *desc)
{
    return shape_count(&desc->shape) < INT32_MAX;
}

/* So are the distances between elements, in a tensor that is part of another one. */
static inline bool places_fit_index(const struct desc *desc)
{
    int64_t reach = 0;
    for (int d = 0; d < desc->shape.rank; d++)
        reach += desc->shape.dim[d] * llabs(desc->stride[d]);
    return reach <= INT32_MAX;
}

/* ---- division by what the launch knows ---- */

/* n / d = (n m >> 32) + n >> shift for n < 2^31 (Granlund and Montgomery 1994). A divisor of 0 is
 * that of an empty tensor, in which nobody divides. */
struct divisor {
    unsigned d, m, shift;
};

static inline struct divisor divisor_of(int64_t d)
{
    struct divisor r = {(unsigned)d, 0, 0};
    if (d == 0)
        return r;
    while (r.shift < 31 && (UINT64_C(1) << r.shift) < (uint64_t)d)
        r.shift++;
    r.m =
        (unsigned)(((UINT64_C(1) << 32) * ((UINT64_C(1) << r.shift) - (uint64_t)d)) / (uint64_t)d +
                   1);
    return r;
}

static __device__ __forceinline__ unsigned divide(unsigned n, const struct divisor &by)
{
    return (__umulhi(n, by.m) + n) >> by.shift;
}

/* ---- sums over threads ---- */

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int with = WARP / 2; with > 0; with /= 2)
        x += __shfl_xor_sync(all_lanes, x, with);
    return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
    for (int with = WARP / 2; with > 0; with /= 2)
        x = fmaxf(x, __shfl_xor_sync(all_lanes, x, with));
    return x;
}

/* All threads of the block get the result. part: WARP floats of shared memory that are the call's
 * alone until the next barrier after it. */
static __device__ __forceinline__ float block_sum(float x, float *part)
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    x = warp_sum(x);
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    x = warp_sum(lane < warps ? part[lane] : 0.0f);
    __syncthreads();
    return x;
}

static __device__ __forceinline__ float block_max(float x, float *part)
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    x = warp_max(x);
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    x = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();
    return x;
}

#endif
