/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists that are ranked by many blocks (ranking_lists.h): a launch per digit counts the keys that
 * agree with the k-th one in the digits before, one gathers the keys up to the k-th, one sorts runs
 * of them, and each further one merges eight runs into one. What the launches before have counted
 * is read by all blocks of the next; which block counts or gathers first changes nothing, since
 * keys differ and are sorted in the end. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RANKING_SPREAD_H
#define ENGINE_KERNELS_CUDA_LIB_RANKING_SPREAD_H

#include "engine/kernels/cuda/lib/ranking_types.h"

namespace
{

/* ---- counting ---- */

__global__ void __launch_bounds__(BLOCK) rank_clear(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    unsigned all = r.digits * r.lists * SPREAD_BINS, step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < all; i += step)
        r.bins[i] = 0;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < r.lists; i += step)
        r.gathered[i] = 0;
}

/* The bin of the thread's eight that has the key, if one has: s becomes the state after it. */
static __device__ __forceinline__ bool rank_narrow(struct rank_state *s, unsigned below,
                                                   const unsigned own[SPREAD_EACH], int shift)
{
    for (unsigned i = 0; i < SPREAD_EACH; below += own[i++]) {
        if (below >= s->need || s->need > below + own[i])
            continue;
        s->prefix |= (rank_key)(threadIdx.x * SPREAD_EACH + i) << shift;
        s->need -= below;
        if (s->need == own[i]) { /* all of this bin are wanted */
            s->prefix |= (1ull << shift) - 1;
            s->need = 0;
        }
        return true;
    }
    return false;
}

/* The sum of x over the threads before this one, and over all. */
static __device__ __forceinline__ unsigned sum_before(unsigned x, unsigned *part, unsigned *all)
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, sum = x, before = 0;
    for (unsigned by = 1; by < WARP; by *= 2) {
        unsigned other = __shfl_up_sync(all_lanes, sum, by);
        sum += lane >= by ? other : 0;
    }
    if (lane == WARP - 1)
        part[warp] = sum;
    __syncthreads();
    *all = 0;
    for (unsigned w = 0; w < BLOCK / WARP; w++) {
        before += w < warp ? part[w] : 0;
        *all += part[w];
    }
    return before + sum - x;
}

/* After r.digit digits; all blocks of a list find the same. */
static __device__ __forceinline__ struct rank_state
rank_state_of(const struct rank_lists &r, unsigned list, struct spread_memory *m)
{
    if (r.digit == 0)
        return {0, r.k};
    size_t at = (size_t)(r.digit - 1) * r.lists + list;
    struct rank_state s = r.states[at];
    if (s.need == 0)
        return s;
    unsigned own[SPREAD_EACH], sum = 0, all;
    for (unsigned i = 0; i < SPREAD_EACH; i++) {
        own[i] = r.bins[at * SPREAD_BINS + threadIdx.x * SPREAD_EACH + i];
        sum += own[i];
    }
    unsigned below = sum_before(sum, m->part, &all);
    if (all <= s.need) /* the list has not more */
        return {rank_absent - 1, 0};
    if (rank_narrow(&s, below, own, r.shift[r.digit - 1]))
        m->next = s;
    __syncthreads();
    return m->next;
}

/* The keys of a thread's next elements, loaded together. */
static __device__ __forceinline__ void rank_load(const struct candidates &c, unsigned from,
                                                 rank_key keys[SPREAD_EACH])
{
    unsigned words[SPREAD_EACH], last = c.count - 1;
#pragma unroll
    for (unsigned e = 0; e < SPREAD_EACH; e++) {
        unsigned i = from + e * BLOCK + threadIdx.x;
        words[e] = ((const unsigned *)c.x)[(size_t)(i < last ? i : last) * c.step];
    }
#pragma unroll
    for (unsigned e = 0; e < SPREAD_EACH; e++) {
        unsigned i = from + e * BLOCK + threadIdx.x;
        keys[e] = i <= last ? key_of_word(c, words[e], i) : rank_absent;
    }
}

__global__ void __launch_bounds__(BLOCK) rank_digits(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    __shared__ unsigned bins[SPREAD_BINS];
    __shared__ struct spread_memory memory;
    unsigned list = blockIdx.y, shift = r.shift[r.digit], bits = r.bits[r.digit];
    struct candidates c = rank_list(r, list);
    struct rank_state s = rank_state_of(r, list, &memory);
    size_t at = (size_t)r.digit * r.lists + list;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        r.states[at] = s;
    if (s.need == 0)
        return;
    for (unsigned b = threadIdx.x; b < SPREAD_BINS; b += BLOCK)
        bins[b] = 0;
    __syncthreads();
    rank_key above = shift + bits == 64 ? 0 : ~0ull << (shift + bits), keys[SPREAD_EACH];
    unsigned step = gridDim.x * SPREAD_PART;
    for (unsigned from = blockIdx.x * SPREAD_PART; from < c.count; from += step) {
        rank_load(c, from, keys);
#pragma unroll
        for (unsigned e = 0; e < SPREAD_EACH; e++)
            if (keys[e] != rank_absent && (keys[e] & above) == s.prefix)
                atomicAdd(&bins[keys[e] >> shift & ((1u << bits) - 1)], 1u);
    }
    __syncthreads();
    for (unsigned b = threadIdx.x; b < SPREAD_BINS; b += BLOCK)
        if (bins[b])
            atomicAdd(&r.bins[at * SPREAD_BINS + b], bins[b]);
}

/* ---- gathering, sorting, merging ---- */

__global__ void __launch_bounds__(BLOCK) rank_gather(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    __shared__ struct spread_memory memory;
    unsigned list = blockIdx.y, lane = threadIdx.x % WARP;
    struct candidates c = rank_list(r, list);
    rank_key limit = rank_state_of(r, list, &memory).prefix, keys[SPREAD_EACH];
    rank_key *out = r.keys + (size_t)list * r.capacity;
    unsigned step = gridDim.x * SPREAD_PART;
    for (unsigned from = blockIdx.x * SPREAD_PART; from < c.count; from += step) {
        rank_load(c, from, keys);
#pragma unroll
        for (unsigned e = 0; e < SPREAD_EACH; e++) {
            bool is = keys[e] <= limit;
            unsigned at = 0, takers = __ballot_sync(all_lanes, is);
            if (lane == 0 && takers)
                at = atomicAdd(&r.gathered[list], (unsigned)__popc(takers));
            at = __shfl_sync(all_lanes, at, 0) + (unsigned)__popc(takers & ((1u << lane) - 1));
            if (is)
                out[at] = keys[e];
        }
    }
}

/* Block (x, y) sorts run x of list y, of what was gathered or of all. */
__global__ void __launch_bounds__(RANK_THREADS)
    rank_runs(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    __shared__ rank_key few[RUN];
    unsigned list = blockIdx.y, from = blockIdx.x * RUN, size = 1;
    struct candidates c = rank_list(r, list);
    unsigned all = r.digits ? r.gathered[list] : c.count, count = all > from ? all - from : 0;
    const rank_key *in = r.keys + (size_t)list * r.capacity + from;
    rank_key *out = r.other + (size_t)list * r.capacity + from;
    while (size < count && size < RUN)
        size *= 2;
    count = count < size ? count : size;
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x)
        few[i] = i >= count ? rank_absent : r.digits ? in[i] : key_of(c, from + i);
    rank_sort(few, size);
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
        bool is = few[i] != rank_absent;
        if (is)
            out[i] = few[i];
        if (is && (i + 1 == size || few[i + 1] == rank_absent))
            r.after[list * r.runs + blockIdx.x] = i + 1;
        if (i == 0 && !is)
            r.after[list * r.runs + blockIdx.x] = 0;
    }
}

/* A thread per key of eight neighbouring runs: its place is how many keys of them come before. */
__global__ void __launch_bounds__(BLOCK) rank_merge(const __grid_constant__ struct rank_lists r)
{
    KERNEL_BEGIN();
    unsigned list = blockIdx.y, i = blockIdx.x * BLOCK + threadIdx.x, own = i / r.run;
    unsigned groups = (r.runs + RUNS_MERGED - 1) / RUNS_MERGED, group = own / RUNS_MERGED;
    unsigned first = group * RUNS_MERGED, length[RUNS_MERGED], before[RUNS_MERGED], place = 0;
    const rank_key *in = r.keys + (size_t)list * r.capacity;
    if (own >= r.runs)
        return;
#pragma unroll
    for (unsigned o = 0; o < RUNS_MERGED; o++) {
        length[o] = first + o < r.runs ? r.lengths[list * r.runs + first + o] : 0;
        place += length[o];
        before[o] = 0;
    }
    if (i == first * r.run)
        r.after[list * groups + group] = place;
    if (i - own * r.run >= r.lengths[list * r.runs + own])
        return;
    rank_key key = in[i];
    for (unsigned span = r.run; span > 0; span /= 2)
#pragma unroll
        for (unsigned o = 0; o < RUNS_MERGED; o++) {
            unsigned to = before[o] + span;
            if (to <= length[o] && in[(size_t)(first + o) * r.run + to - 1] < key)
                before[o] = to;
        }
    place = 0;
#pragma unroll
    for (unsigned o = 0; o < RUNS_MERGED; o++)
        place += before[o];
    r.other[(size_t)list * r.capacity + first * r.run + place] = key;
}

} /* namespace */

#endif
