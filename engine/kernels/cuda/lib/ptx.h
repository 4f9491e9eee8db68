/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX(instead, ...) is inline assembly; a compiler that has none does `instead`. */
#ifndef ENGINE_KERNELS_CUDA_LIB_PTX_H
#define ENGINE_KERNELS_CUDA_LIB_PTX_H

#include "engine/kernels/cuda/lib/kernel.h"

/* x, computed here and not again: the compiler rather does the arithmetic of places in memory anew
 * in each round of a loop than keep another register. */
#define KEEP(x) PTX((void)(x), "mov.u32 %0, %0;" : "+r"(x))

/* An address of shared memory as instructions take it, in bytes. */
#ifndef PTX
#define PTX(instead, ...) asm volatile(__VA_ARGS__)
typedef unsigned shared_place;
static __device__ __forceinline__ shared_place shared_place_of(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}
#else
typedef char *shared_place;
static inline shared_place shared_place_of(const void *pointer)
{
    return (char *)pointer;
}
#endif

#endif
