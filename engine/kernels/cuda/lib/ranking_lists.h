/* SPDX-License-Identifier: Apache-2.0
 *
 * The best k of each of some lists, in order, as keys in the device's memory. A block takes a list
 * where lists are short or many (lib/ranking.h). Few long ones, or ones of which more are wanted
 * than shared memory sorts, are spread over the device, so that
 * none of its multiprocessors idles while one block walks: a launch per digit counts the keys that
 * agree with the k-th one in the digits before, one gathers the keys up to the k-th, one sorts runs
 * of them, and each further one merges eight runs into one. What the launches before have counted
 * is read by all blocks of the next; which block counts or gathers first changes nothing, since
 * keys differ and are sorted in the end. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RANKING_LISTS_H
#define ENGINE_KERNELS_CUDA_LIB_RANKING_LISTS_H

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
    /* List l begins (l / inner) * outer_step + l % inner elements behind list 0, which is `first`;
     * elements of 4 bytes; of equal ones the first comes first. */
    struct candidates first;
    const float *least; /* of first.has_least; NULL: first.least is it */
    unsigned lists, inner, outer_step, k;
    /* rank_plan: */
    unsigned parts;            /* blocks that count and gather a list; 0: a block ranks it alone */
    unsigned digits;           /* to be counted; 0: all are wanted */
    unsigned room, runs;       /* keys and runs of a list */
    unsigned char shift[SPREAD_DIGITS], bits[SPREAD_DIGITS];
    /* rank_lay_out: */
    rank_key *keys, *other;    /* [lists, room]: keys go from here to there, and back */
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
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory memory;
    unsigned list = blockIdx.x;
    rank_key *out = r.keys + (size_t)list * r.room, *keys = r.room > RANK_SHARED ? out : few;
    unsigned found = rank_best(rank_list(r, list), r.k, keys, r.room, &memory);
    for (unsigned i = threadIdx.x; keys == few && i < found; i += blockDim.x)
        out[i] = few[i];
    if (threadIdx.x == 0)
        r.lengths[list] = found;
}

/* ---- many blocks per list: counting ---- */

__global__ void __launch_bounds__(BLOCK) rank_clear(const __grid_constant__ struct rank_lists r)
{
    unsigned all = r.digits * r.lists * SPREAD_BINS, step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < all; i += step)
        r.bins[i] = 0;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < r.lists; i += step)
        r.gathered[i] = 0;
}

/* The bin of the thread's eight that has the key, if one has: s becomes the state behind it. */
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
    __shared__ struct spread_memory memory;
    unsigned list = blockIdx.y, lane = threadIdx.x % WARP;
    struct candidates c = rank_list(r, list);
    rank_key limit = rank_state_of(r, list, &memory).prefix, keys[SPREAD_EACH];
    rank_key *out = r.keys + (size_t)list * r.room;
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
    __shared__ rank_key few[RUN];
    unsigned list = blockIdx.y, from = blockIdx.x * RUN, size = 1;
    struct candidates c = rank_list(r, list);
    unsigned all = r.digits ? r.gathered[list] : c.count, count = all > from ? all - from : 0;
    const rank_key *in = r.keys + (size_t)list * r.room + from;
    rank_key *out = r.other + (size_t)list * r.room + from;
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
    unsigned list = blockIdx.y, i = blockIdx.x * BLOCK + threadIdx.x, own = i / r.run;
    unsigned groups = (r.runs + RUNS_MERGED - 1) / RUNS_MERGED, group = own / RUNS_MERGED;
    unsigned first = group * RUNS_MERGED, length[RUNS_MERGED], before[RUNS_MERGED], place = 0;
    const rank_key *in = r.keys + (size_t)list * r.room;
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
    r.other[(size_t)list * r.room + first * r.run + place] = key;
}

} /* namespace */

/* ---- host ---- */

static inline unsigned rank_digit(struct rank_lists *r, int low, int high)
{
    while (high > low) {
        int shift = high - SPREAD_BITS > low ? high - SPREAD_BITS : low;
        r->shift[r->digits] = (unsigned char)shift;
        r->bits[r->digits++] = (unsigned char)(high - shift);
        high = shift;
    }
    return r->digits;
}

/* From what the lists are to how they are ranked. */
static inline void rank_plan(struct rank_lists *r, const struct kernel_query *q)
{
    int64_t units = q->device->properties.units > 0 ? q->device->properties.units : 1;
    int64_t count = r->first.count, parts = div_up(count, SPREAD_PART);
    int64_t least = r->k > RANK_SHARED ? 0 : SPREAD_LEAST, lists = r->lists > 0 ? r->lists : 1;
    int64_t most = (r->k > RANK_SHARED ? 8 : 1) * units, each = div_up(2 * units, lists);
    r->room = power_of_two_from(r->k);
    r->runs = 1;
    if (2 * lists > most || r->k == 0 || count < least)
        return;
    r->parts = (unsigned)(parts < each ? parts : each);
    r->runs = (unsigned)div_up(r->k, RUN);
    r->room = r->runs * RUN;
    if (r->k >= r->first.count)
        return;
    int places = 0;
    while (INT64_C(1) << places < count)
        places++;
    rank_digit(r, 32, 64);
    rank_digit(r, 0, places);
}

/* Puts the parts of the workspace into r; returns how long it is. */
static inline size_t rank_lay_out(struct rank_lists *r, char *memory)
{
    size_t at = 0, key_bytes = padded_bytes((int64_t)r->lists * r->room, sizeof(rank_key));
    size_t run_bytes = padded_bytes((int64_t)r->lists * r->runs, sizeof(unsigned));
    int64_t noted = (int64_t)r->digits * r->lists;
    r->keys = (rank_key *)memory;
    at += key_bytes;
    r->lengths = (unsigned *)(memory + at);
    at += run_bytes;
    if (r->parts == 0)
        return at;
    r->other = (rank_key *)(memory + at);
    at += key_bytes;
    r->after = (unsigned *)(memory + at);
    at += run_bytes;
    r->gathered = (unsigned *)(memory + at);
    at += padded_bytes(r->lists, sizeof(unsigned));
    r->states = (struct rank_state *)(memory + at);
    at += padded_bytes(noted, sizeof(struct rank_state));
    r->bins = (unsigned *)(memory + at);
    return at + padded_bytes(noted, SPREAD_BINS * sizeof(unsigned));
}

static inline void rank_turn(struct rank_lists *r)
{
    rank_key *keys = r->keys;
    unsigned *lengths = r->lengths;
    r->keys = r->other;
    r->other = keys;
    r->lengths = r->after;
    r->after = lengths;
}

static inline void rank_launch_spread(struct rank_lists *r, const struct kernel_query *q,
                                      const struct kernel_args *args)
{
    struct cuda_grid all = cuda_size(r->parts, r->lists), block = cuda_size(BLOCK);
    if (r->digits) {
        LAUNCH(rank_clear, grid_for(q, (int64_t)r->digits * r->lists * SPREAD_BINS), block, 0, r,
               args);
        for (r->digit = 0; r->digit < r->digits; r->digit++)
            LAUNCH(rank_digits, all, block, 0, r, args);
        LAUNCH(rank_gather, all, block, 0, r, args);
    }
    LAUNCH(rank_runs, cuda_size(r->runs, r->lists), rank_threads(2 * RUN), 0, r, args);
    rank_turn(r);
    for (r->run = RUN; r->runs > 1; r->run *= RUNS_MERGED) {
        LAUNCH(rank_merge, cuda_size((unsigned)div_up(r->room, BLOCK), r->lists), block, 0, r,
               args);
        rank_turn(r);
        r->runs = (unsigned)div_up(r->runs, RUNS_MERGED);
    }
}

/* Afterwards r->keys has each list's keys, `room` apart, and r->lengths how many they are. */
static inline void rank_launch(struct rank_lists *r, const struct kernel_query *q,
                               const struct kernel_args *args)
{
    if (r->parts)
        rank_launch_spread(r, q, args);
    else
        LAUNCH(rank_alone, cuda_size(r->lists), rank_threads(r->first.count), 0, r, args);
}

#endif
