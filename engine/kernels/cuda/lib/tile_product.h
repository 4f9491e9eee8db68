/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the results of a block (lib/tile.h) go that are part of a product of matrices. */
#ifndef ENGINE_KERNELS_CUDA_LIB_TILE_PRODUCT_H
#define ENGINE_KERNELS_CUDA_LIB_TILE_PRODUCT_H

#include "engine/kernels/cuda/lib/product.h"
#include "engine/kernels/cuda/lib/tile.h"

/* c: of element 0 of the product's result. */
template <int each>
static __device__ __forceinline__ void tile_store(const struct product &p, int64_t c,
                                                  struct tile_sums<each> &sums)
{
    const unsigned side = TILE_SIDE * each;
    unsigned row = blockIdx.y * side + threadIdx.x / TILE_SIDE;
    unsigned column = blockIdx.x * side + threadIdx.x % TILE_SIDE;
#pragma unroll 1
    for (int i = 0; i < each && row < p.m; i++, row += TILE_SIDE) {
#pragma unroll
        for (int j = 0; j < each; j++) {
            unsigned s = column + TILE_SIDE * j;
            if (s >= p.n)
                continue;
            size_t at = (size_t)(c + row * p.c_row + s * p.c_col);
            float value = epilogue_value(p.epilogue, p.alpha * sums.v[0][j], at, row, s);
            group_store_as<1>(p.epilogue.type, p.c, at, {{value}});
        }
        tile_next_row<each>(sums);
    }
}

#endif
