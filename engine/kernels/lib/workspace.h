/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of one block of memory, each aligned as tensors are. The same code runs twice: with base
 * NULL it only counts the bytes in *at, then it gives out the memory.
 */
#ifndef ENGINE_KERNELS_LIB_WORKSPACE_H
#define ENGINE_KERNELS_LIB_WORKSPACE_H

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"

static inline size_t aligned_bytes(size_t bytes)
{
    return round_up(bytes, ALIGN_TENSOR);
}

static inline void *take_bytes(char *base, size_t *at, size_t bytes)
{
    void *piece = base ? base + *at : NULL;
    *at += aligned_bytes(bytes);
    return piece;
}

static inline float *take_floats(char *base, size_t *at, int64_t count)
{
    return take_bytes(base, at, (size_t)count * sizeof(float));
}

#endif
