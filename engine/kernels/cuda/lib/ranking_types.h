/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists to be ranked (ranking_lists.h), and the kernel that gives each a block. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RANKING_TYPES_H
#define ENGINE_KERNELS_CUDA_LIB_RANKING_TYPES_H

#include "engine/kernels/cuda/lib/ranking.h"

enum {
    SPREAD_BITS = 11,
    SPREAD_BINS = 1 << SPREAD_BITS,
    SPREAD_EACH = 8, /* elements, and bins, of a thread */
    SPREAD_PART = BLOCK * SPREAD_EACH,
    SPREAD_LEAST = 8 * SPREAD_PART, /* shorter lists are a block's, if few are wanted */
    SPREAD_DIGITS = 6,              /* most: three of the value, three of the place */
    RUN = RANK_SHARED,
    RUNS_MERGED = 8,
};

/* Where the search for the k-th key is. */
struct rank_state {
    rank_key prefix;
    unsigned need; /* keys with this prefix; 0: prefix is the k-th key, or lies before the next */
};

struct rank_lists {
    /* List l begins (l / inner) * outer_step + l % inner elements after list 0, which is `first`;
     * elements of 4 bytes; of equal ones the first comes first. */
    struct candidates first;
    const float *least; /* of first.has_least; NULL: first.least is it */
    unsigned lists, inner, outer_step, k;
    /* rank_plan: */
    unsigned parts;          /* blocks that count and gather a list; 0: a block ranks it alone */
    unsigned digits;         /* to be counted; 0: all are wanted */
    unsigned capacity, runs; /* keys and runs of a list */
    unsigned clearing;       /* blocks that clear the bins */
    unsigned char shift[SPREAD_DIGITS], bits[SPREAD_DIGITS];
    /* rank_lay_out: */
    rank_key *keys, *other;    /* [lists, capacity]: keys go from here to there, and back */
    unsigned *lengths, *after; /* [lists, runs]: of runs in keys, in other */
    unsigned *gathered;        /* [lists] */
    unsigned *bins;            /* [digits, lists, SPREAD_BINS] */
    struct rank_state *states; /* [digits, lists]: before the digit is counted */
    /* rank_launch, by launch: */
    unsigned digit, run; /* how many digits are counted; length of a run */
};

struct spread_memory {
    unsigned part[WARP];
    struct rank_state next;
};

/* Files that rank have these kernels of their own. */
namespace
{

static __device__ __forceinline__ struct candidates rank_list(const struct rank_lists &r,
                                                              unsigned list)
{
    struct candidates c = r.first;
    unsigned outer = list / r.inner;
    c.x = (const unsigned *)c.x + (size_t)outer * r.outer_step + (list - outer * r.inner);
    if (r.least)
        c.least = *r.least;
    return c;
}

/* ---- a block per list ---- */

__global__ void __launch_bounds__(RANK_THREADS)
    rank_alone(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory memory;
    unsigned list = blockIdx.x;
    rank_key *out = r.keys + (size_t)list * r.capacity,
             *keys = r.capacity > RANK_SHARED ? out : few;
    unsigned found = rank_best(rank_list(r, list), r.k, keys, r.capacity, &memory);
    for (unsigned i = threadIdx.x; keys == few && i < found; i += blockDim.x)
        out[i] = few[i];
    if (threadIdx.x == 0)
        r.lengths[list] = found;
}

} /* namespace */

#endif
