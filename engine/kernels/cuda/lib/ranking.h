/* SPDX-License-Identifier: Apache-2.0
 *
 * The best k of a list by one block, in order. An element's value becomes an unsigned number whose
 * order is the wanted one, its place the low half of a key: all keys differ, so that ties are cut
 * and ordered by place and the result does not depend on how threads run.
 *
 * The k-th smallest key is found by counting one byte of the keys after the other, the highest
 * first, among those that agree in the bytes before; then the keys up to it are gathered and
 * sorted by a bitonic network. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RANKING_H
#define ENGINE_KERNELS_CUDA_LIB_RANKING_H

#include "engine/kernels/cuda/lib/query.h"

enum {
    RANK_THREADS_MIN = 64,
    RANK_THREADS = 1024, /* most of a block */
    RANK_WARPS = RANK_THREADS / WARP,
    RANK_BINS = 256,
    RANK_EACH = RANK_BINS / WARP,
    RANK_BINS_ROOM = RANK_BINS + RANK_BINS / RANK_EACH,
    RANK_SHARED = 2048, /* keys that are sorted in shared memory */
};

typedef unsigned long long rank_key;

static const rank_key rank_absent = ~0ull;

/* What is ranked: element i is at x[i * step]. */
struct candidates {
    const void *x;
    int dtype; /* f32, i32 or u8 */
    unsigned step, count;
    bool largest;   /* first */
    bool last;      /* of equal ones, the last comes first */
    bool has_least; /* f32: only what is larger than `least` takes part */
    float least;
};

static inline bool can_rank(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_I32 || dtype == DTYPE_U8;
}

/* Threads of a block that ranks so many: a few elements each, and not more barriers' worth. */
static inline struct cuda_grid rank_threads(int64_t count)
{
    const unsigned least = RANK_THREADS_MIN, limit = RANK_THREADS;
    unsigned threads = power_of_two_from(count / 4);
    return cuda_size(threads < least ? least : threads > limit ? limit : threads);
}

/* Unsigned numbers in the order of the floats; -0 is 0. */
static __device__ __forceinline__ unsigned order_of_float(float x)
{
    unsigned bits = (unsigned)__float_as_int(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ rank_key key_of_order(const struct candidates &c, unsigned order,
                                                        unsigned i)
{
    return (rank_key)(c.largest ? ~order : order) << 32 | (c.last ? ~i : i);
}

/* Of element i, an f32 or i32 with these bits. */
static __device__ __forceinline__ rank_key key_of_word(const struct candidates &c, unsigned bits,
                                                       unsigned i)
{
    if (c.dtype != DTYPE_F32)
        return key_of_order(c, bits ^ 0x80000000u, i);
    float x = __int_as_float((int)bits);
    if (c.has_least && !(x > c.least))
        return rank_absent;
    return key_of_order(c, order_of_float(x), i);
}

static __device__ __forceinline__ rank_key key_of(const struct candidates &c, unsigned i)
{
    size_t at = (size_t)i * c.step;
    if (c.dtype == DTYPE_U8)
        return key_of_order(c, ((const unsigned char *)c.x)[at], i);
    return key_of_word(c, ((const unsigned *)c.x)[at], i);
}

static __device__ __forceinline__ unsigned place_of_key(const struct candidates &c, rank_key key)
{
    return c.last ? ~(unsigned)key : (unsigned)key;
}

/* The smallest key, by a warp together. */
static __device__ __forceinline__ rank_key rank_first(const struct candidates &c)
{
    rank_key best = rank_absent;
    for (unsigned i = threadIdx.x % WARP; i < c.count; i += WARP) {
        rank_key key = key_of(c, i);
        best = key < best ? key : best;
    }
    for (int with = WARP / 2; with > 0; with /= 2) {
        rank_key other = __shfl_xor_sync(all_lanes, best, with);
        best = other < best ? other : best;
    }
    return best;
}

/* ---- the threads of a block together; each begins and ends with all memory settled ---- */

struct rank_memory {
    unsigned bins[RANK_BINS_ROOM];
    unsigned need, found;
    rank_key prefix;
};

/* Where bin b is: a word is left free after the bins of a lane of rank_scan, so that the lanes
 * meet in no bank. */
static __device__ __forceinline__ unsigned rank_bin(unsigned b)
{
    return b + b / RANK_EACH;
}

/* bins becomes its running sum: by the first warp, some neighbouring bins a lane. */
static __device__ __forceinline__ void rank_scan(unsigned *bins)
{
    unsigned lane = threadIdx.x, sum = 0, *own = bins + lane * (RANK_EACH + 1);
    for (int i = 0; lane < WARP && i < RANK_EACH; i++)
        sum = own[i] += sum;
    if (lane < WARP) {
        unsigned all = sum;
        for (unsigned by = 1; by < WARP; by *= 2) {
            unsigned other = __shfl_up_sync(all_lanes, all, by);
            all += lane >= by ? other : 0;
        }
        for (int i = 0; i < RANK_EACH; i++)
            own[i] += all - sum;
    }
    __syncthreads();
}

/* Counts byte `shift` of the keys that begin with the prefix. */
static __device__ __forceinline__ void rank_count(const struct candidates &c, int shift,
                                                  struct rank_memory *m)
{
    rank_key above = shift == 56 ? 0 : ~0ull << (shift + 8);
    for (unsigned b = threadIdx.x; b < RANK_BINS_ROOM; b += blockDim.x)
        m->bins[b] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < c.count; i += blockDim.x) {
        rank_key key = key_of(c, i);
        if (key != rank_absent && (key & above) == m->prefix)
            atomicAdd(&m->bins[rank_bin((unsigned)(key >> shift) & (RANK_BINS - 1))], 1u);
    }
    __syncthreads();
    rank_scan(m->bins);
}

/* The k-th smallest key, or the largest possible one if there are not more than k. */
static __device__ __forceinline__ rank_key rank_limit(const struct candidates &c, unsigned k,
                                                      struct rank_memory *m)
{
    if (threadIdx.x == 0) {
        m->prefix = 0;
        m->need = k;
    }
    __syncthreads();
    for (int shift = 56; shift >= 0; shift -= 8) {
        rank_count(c, shift, m);
        if (m->bins[rank_bin(RANK_BINS - 1)] <= m->need) /* all that agree so far */
            return shift == 56 ? rank_absent - 1 : m->prefix | ((1ull << (shift + 8)) - 1);
        unsigned need = m->need;
        __syncthreads();
        for (unsigned b = threadIdx.x; b < RANK_BINS; b += blockDim.x) {
            unsigned below = b > 0 ? m->bins[rank_bin(b - 1)] : 0;
            if (below >= need || need > m->bins[rank_bin(b)])
                continue;
            m->prefix |= (rank_key)b << shift;
            m->need = need - below;
        }
        __syncthreads();
    }
    return m->prefix;
}

/* Sorts keys[0 .. size), size a power of two. */
static __device__ __forceinline__ void rank_sort(rank_key *keys, unsigned size)
{
    for (unsigned run = 2; run <= size; run *= 2) {
        for (unsigned by = run / 2; by > 0; by /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < size / 2; i += blockDim.x) {
                unsigned a = 2 * i - (i & (by - 1)), b = a + by;
                rank_key low = keys[a], high = keys[b];
                if ((low > high) != ((a & run) != 0)) {
                    keys[a] = high;
                    keys[b] = low;
                }
            }
        }
    }
    __syncthreads();
}

/* The smallest keys, in order, at most k; returns how many. keys has capacity for `capacity` of
 * them, a power of two and at least k. */
static __device__ __forceinline__ unsigned rank_best(const struct candidates &c, unsigned k,
                                                     rank_key *keys, unsigned capacity,
                                                     struct rank_memory *m)
{
    rank_key limit = k ? rank_limit(c, k, m) : 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < capacity; i += blockDim.x)
        keys[i] = rank_absent;
    if (threadIdx.x == 0)
        m->found = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; k && i < c.count; i += blockDim.x) {
        rank_key key = key_of(c, i);
        if (key <= limit)
            keys[atomicAdd(&m->found, 1u)] = key;
    }
    __syncthreads();
    unsigned found = m->found, size = 1;
    while (size < found)
        size *= 2;
    rank_sort(keys, size);
    return found;
}

#endif
