/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's part of a product of matrices, in f32: a square of 16 `each` results a side, 256
 * threads, `each` by `each` results per thread in registers, both factors by 16 of depth through
 * shared memory. Where the factors come from is the caller's: matrices (matmul.cu), windows of an
 * image (conv.cu).
 *
 * A plain kernel on purpose: what it is for is nodes that the vendor's libraries refuse, and a
 * yardstick that is independent of them. */
#ifndef ENGINE_KERNELS_CUDA_LIB_TILE_H
#define ENGINE_KERNELS_CUDA_LIB_TILE_H

#include "engine/kernels/cuda/lib/epilogue.h"

enum { TILE_SIDE = 16, TILE_DEPTH = 16 };

/* The padding keeps what is written together, 16 of depth by two neighbours, in 32 banks. */
template <int each> struct tile_memory {
    float a[TILE_DEPTH][TILE_SIDE * each + 2], b[TILE_DEPTH][TILE_SIDE * each + 2];
};

template <int each> struct tile_sums {
    float v[each][each];
};

/* A thread's rows are row + 16 i, its columns column + 16 j: neighbours write beside each other. */
template <int each>
static __device__ __forceinline__ void tile_multiply(const struct tile_memory<each> &m,
                                                     struct tile_sums<each> &sums)
{
    unsigned row = threadIdx.x / TILE_SIDE, column = threadIdx.x % TILE_SIDE;
#pragma unroll 4
    for (int d = 0; d < TILE_DEPTH; d++) {
        float a[each], b[each];
#pragma unroll
        for (int i = 0; i < each; i++) {
            a[i] = m.a[d][row + TILE_SIDE * i];
            b[i] = m.b[d][column + TILE_SIDE * i];
        }
#pragma unroll
        for (int i = 0; i < each; i++)
#pragma unroll
            for (int j = 0; j < each; j++)
                sums.v[i][j] += a[i] * b[j];
    }
}

/* The second row of sums becomes the first, and so on: a loop that takes one row after the other
 * is in the code once, and the sums stay in registers, which have no numbers that are known at run
 * time only. */
template <int each>
static __device__ __forceinline__ void tile_next_row(struct tile_sums<each> &sums)
{
#pragma unroll
    for (int i = 0; i + 1 < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++)
            sums.v[i][j] = sums.v[i + 1][j];
}

#endif
