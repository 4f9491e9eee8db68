/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth of the device's memory and of its second cache: 16 bytes per access, four accesses of a
 * thread in flight, past the first cache. All threads together go through the arrays from the front
 * to the back, so that a row of DRAM is opened once.
 *
 * Memory: each array ten times the second cache, so that nothing of it is left there from round to
 * round. The cache: a quarter of it, because chips whose cache has two halves may keep a line in
 * both. */
#include "engine/kernels/cuda/lib/roof.h"

enum { IN_FLIGHT = 4, CACHES = 10, CACHE_PARTS = 4 };

/* Counted in 16 bytes. */
struct stream_args {
    uint4 *to;
    const uint4 *from;
    int64_t count; /* a multiple of what all threads have in flight */
    int rounds;
    unsigned never;
};

static __device__ __forceinline__ uint4 load(const uint4 *at)
{
    uint4 v;
    PTX(v = *at, "ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(at));
    KERNEL_COUNT(sizeof(v));
    return v;
}

static __device__ __forceinline__ void store(uint4 *at, uint4 v)
{
    PTX(*at = v, "st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};"
        :
        : "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
    KERNEL_COUNT(sizeof(v));
}

__global__ void __launch_bounds__(BLOCK) stream_read(const __grid_constant__ struct stream_args k)
{
    int64_t threads = (int64_t)gridDim.x * BLOCK, first = blockIdx.x * BLOCK + threadIdx.x;
    unsigned bits = 0;
    for (int r = 0; r < k.rounds; r++)
        for (int64_t at = first; at < k.count; at += threads * IN_FLIGHT) {
            uint4 v[IN_FLIGHT];
#pragma unroll
            for (int f = 0; f < IN_FLIGHT; f++)
                v[f] = load(k.from + at + f * threads);
#pragma unroll
            for (int f = 0; f < IN_FLIGHT; f++)
                bits |= v[f].x ^ v[f].y ^ v[f].z ^ v[f].w;
        }
    if (bits == k.never) /* memory of one byte's repetition xors to 0 */
        k.to->x = bits;
}

__global__ void __launch_bounds__(BLOCK) stream_write(const __grid_constant__ struct stream_args k)
{
    int64_t threads = (int64_t)gridDim.x * BLOCK, first = blockIdx.x * BLOCK + threadIdx.x;
    for (int r = 0; r < k.rounds; r++)
        for (int64_t at = first; at < k.count; at += threads * IN_FLIGHT) {
            unsigned x = (unsigned)at + (unsigned)r;
#pragma unroll
            for (int f = 0; f < IN_FLIGHT; f++)
                store(k.to + at + f * threads, make_uint4(x, ~x, x, ~x));
        }
}

__global__ void __launch_bounds__(BLOCK) stream_copy(const __grid_constant__ struct stream_args k)
{
    int64_t threads = (int64_t)gridDim.x * BLOCK, first = blockIdx.x * BLOCK + threadIdx.x;
    for (int r = 0; r < k.rounds; r++)
        for (int64_t at = first; at < k.count; at += threads * IN_FLIGHT) {
            uint4 v[IN_FLIGHT];
#pragma unroll
            for (int f = 0; f < IN_FLIGHT; f++)
                v[f] = load(k.from + at + f * threads);
#pragma unroll
            for (int f = 0; f < IN_FLIGHT; f++)
                store(k.to + at + f * threads, v[f]);
        }
}

/* ---- hooks ---- */

static enum status prepare(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why)
{
    const struct device_properties *p = &device->properties;
    bool copies = strcmp(roof->pattern, "copy") == 0, cached = strcmp(roof->level, "L2") == 0;
    int64_t step = (int64_t)roof_blocks(device) * BLOCK * IN_FLIGHT;
    int64_t bytes =
        cached ? (int64_t)(p->cache_bytes / CACHE_PARTS) : (int64_t)p->cache_bytes * CACHES;
    int64_t count = bytes / (int64_t)sizeof(uint4) / step * step;
    size_t needed = (size_t)count * sizeof(uint4) * (copies ? 2 : 1);
    if (count == 0)
        return REFUSE(why,
                      "the second cache, %zu KiB, is too small to be distinguished from the first",
                      p->cache_bytes >> 10);
    if (needed > p->free_bytes / 2)
        return REFUSE(why,
                      "needs %zu MB, %d times the second cache per array; half of what is "
                      "free are %zu MB",
                      needed >> 20, CACHES, p->free_bytes >> 21);
    TRY(roof_new(device, needed, state, why));
    (*state)->count = count;
    (*state)->apart = copies ? count : 0;
    work->amount = (double)needed;
    work->working_bytes = needed;
    return STATUS_OK;
}

#define STREAM_RUN(kernel)                                                                         \
    static enum status run_##kernel(const struct roof_state *state, int64_t rounds, void *stream,  \
                                    struct error *err)                                             \
    {                                                                                              \
        uint4 *memory = (uint4 *)state->memory;                                                    \
        struct stream_args k = {memory + state->apart, memory, state->count, (int)rounds, ~0u};    \
        ROOF_LAUNCH_TRY(kernel, cuda_size(roof_blocks(state->device)), cuda_size(BLOCK), 0, &k,    \
                        stream, err);                                                              \
        return STATUS_OK;                                                                          \
    }

STREAM_RUN(stream_read)
STREAM_RUN(stream_write)
STREAM_RUN(stream_copy)

#define STREAM_ROOF(name, level, pattern, instruction)                                             \
    {                                                                                              \
        name, "cuda", level, "", #pattern, instruction, "B/s", ROOF_BANDWIDTH, prepare,            \
            run_stream_##pattern, roof_release                                                     \
    }

static const struct device_roof roofs[] = {
    STREAM_ROOF("read DRAM", "DRAM", read, "ld.global.cg.v4"),
    STREAM_ROOF("write DRAM", "DRAM", write, "st.global.cg.v4"),
    STREAM_ROOF("copy DRAM", "DRAM", copy, "ld, st.global.cg.v4"),
    STREAM_ROOF("read L2", "L2", read, "ld.global.cg.v4"),
    STREAM_ROOF("copy L2", "L2", copy, "ld, st.global.cg.v4"),
};

ROOF_GROUP(stream) = ROOFS(roofs);
