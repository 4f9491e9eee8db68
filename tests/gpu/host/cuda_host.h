/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA C for a machine without a GPU: put in front of a .cu file it makes the file plain C++ whose
 * kernels run on the host, one block after the other (grid.c). What the language has of its own and
 * the project's kernels use is here and nothing else, so a new need is a compile error.
 *
 * It is about right answers only: index arithmetic, tails, barriers, memory between guard zones,
 * and accesses that nothing puts in an order (watch.h). */
#ifndef TESTS_GPU_HOST_CUDA_HOST_H
#define TESTS_GPU_HOST_CUDA_HOST_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* What only plays the GPU's part is not watched (watch.h). */
#define UNWATCHED __attribute__((no_sanitize("thread")))

#include "tests/gpu/host/cuda_arithmetic.h"
#include "tests/gpu/host/cuda_tensor.h"
#include "tests/gpu/host/grid.h"

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__      static
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict

#define threadIdx (host_thread_index())
#define blockIdx  (host_block_index())
#define blockDim  (host_block_size())
#define gridDim   (host_grid_size())

/* Counted: a kernel that may be launched early must have it in every thread. */
#define KERNEL_BEGIN() host_begin()

/* Memory that the launch sizes. */
#define SHARED_MEMORY(type, name) type *name = (type *)host_shared()

/* Inline assembly is what follows `instead`. */
#define PTX(instead, ...) instead
/* A roof's operations or bytes, counted where they are done. */
#define KERNEL_COUNT(n) host_count((double)(n))

/* ---- from a kernel's name to something that can be called with a list of arguments ---- */

template <class A> static inline void host_call(void (*kernel)(A), void **arguments)
{
    kernel(*(A *)arguments[0]);
}

template <class A> static constexpr size_t host_argument_bytes(void (*)(A))
{
    return sizeof(A);
}

template <auto kernel> struct host_kernel_of {
    static void run(void **arguments)
    {
        host_call(kernel, arguments);
    }
    static inline size_t shared_bytes;
    static inline const struct host_kernel entry = {run, host_argument_bytes(kernel),
                                                    &shared_bytes};
};

#define OUT_OF_LINE
#define KERNEL_ADDRESS(...) ((const void *)&host_kernel_of<__VA_ARGS__>::entry)

/* ---- barriers and exchange ---- */

static inline void __syncthreads(void)
{
    host_wait_block();
}

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    host_wait_warp(mask);
}

template <class T> static inline T host_exchange(unsigned mask, T value, int lane)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(value));
    bits = host_shuffle(mask, bits, lane);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int with)
{
    return host_exchange(mask, value, host_lane() ^ with);
}

template <class T> static inline T __shfl_down_sync(unsigned mask, T value, int by)
{
    int from = host_lane() + by;
    return host_exchange(mask, value, from < 32 ? from : host_lane());
}

template <class T> static inline T __shfl_up_sync(unsigned mask, T value, int by)
{
    int from = host_lane() - by;
    return host_exchange(mask, value, from >= 0 ? from : host_lane());
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int from)
{
    return host_exchange(mask, value, from & 31);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    unsigned bits = 0;
    for (int lane = 0; lane < 32; lane++)
        bits |= (unsigned)(host_exchange(mask, predicate, lane) != 0) << lane;
    return bits;
}

/* ---- atomics: blocks and threads run by turns ---- */

template <class T> UNWATCHED static inline T atomicAdd(T *at, T value)
{
    T old = *at;
    watch_access(at, sizeof(*at), WATCH_ATOMIC);
    *at = old + value;
    return old;
}

template <class T> UNWATCHED static inline T atomicMax(T *at, T value)
{
    T old = *at;
    watch_access(at, sizeof(*at), WATCH_ATOMIC);
    *at = old > value ? old : value;
    return old;
}

template <class T> UNWATCHED static inline T atomicOr(T *at, T value)
{
    T old = *at;
    watch_access(at, sizeof(*at), WATCH_ATOMIC);
    *at = old | value;
    return old;
}

template <class T> UNWATCHED static inline T atomicCAS(T *at, T expected, T value)
{
    T old = *at;
    watch_access(at, sizeof(*at), WATCH_ATOMIC);
    if (old == expected)
        *at = value;
    return old;
}

#endif
