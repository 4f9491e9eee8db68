/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposing a block of elements of 1, 2, 4 or 8 bytes. */
#ifndef ENGINE_KERNELS_LIB_COPY_BLOCK_H
#define ENGINE_KERNELS_LIB_COPY_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/lib/simd.h"

#define copy_block SIMD_FN(copy_block)

/* na x nb elements: (a, b) from src + a src_stride + b elem to dst + b dst_stride + a elem. */
struct copy_block {
    const char *src;
    char *dst;
    int64_t src_stride, dst_stride, na, nb;
};
void copy_block(const struct copy_block *block, int elem, bool stream);

#endif
