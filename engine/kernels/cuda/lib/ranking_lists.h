/* SPDX-License-Identifier: Apache-2.0
 *
 * The best k of each of some lists, in order, as keys in the device's memory. A block takes a list
 * where lists are short or many (ranking.h). Few long ones, or ones of which more are wanted than
 * shared memory sorts, are spread over the device (ranking_spread.h), so that none of its
 * multiprocessors idles while one block walks. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RANKING_LISTS_H
#define ENGINE_KERNELS_CUDA_LIB_RANKING_LISTS_H

#include "engine/kernels/cuda/lib/ranking_spread.h"

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
    int64_t limit = (r->k > RANK_SHARED ? 8 : 1) * units, each = div_up(2 * units, lists);
    r->capacity = power_of_two_from(r->k);
    r->runs = 1;
    if (2 * lists > limit || r->k == 0 || count < least)
        return;
    r->parts = (unsigned)(parts < each ? parts : each);
    r->runs = (unsigned)div_up(r->k, RUN);
    r->capacity = r->runs * RUN;
    if (r->k >= r->first.count)
        return;
    int places = 0;
    while (INT64_C(1) << places < count)
        places++;
    rank_digit(r, 32, 64);
    rank_digit(r, 0, places);
    r->clearing = grid_for(q, (int64_t)r->digits * r->lists * SPREAD_BINS).x;
}

/* Puts the parts of the workspace into r; returns how long it is. */
static inline size_t rank_lay_out(struct rank_lists *r, char *memory)
{
    size_t at = 0, key_bytes = padded_bytes((int64_t)r->lists * r->capacity, sizeof(rank_key));
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

static inline void rank_launch_spread(struct rank_lists *r, const struct kernel_args *args)
{
    struct cuda_grid all = cuda_size(r->parts, r->lists), block = cuda_size(BLOCK);
    if (r->digits) {
        LAUNCH(rank_clear, cuda_size(r->clearing), block, 0, r, args);
        for (r->digit = 0; r->digit < r->digits; r->digit++)
            LAUNCH(rank_digits, all, block, 0, r, args);
        LAUNCH(rank_gather, all, block, 0, r, args);
    }
    LAUNCH(rank_runs, cuda_size(r->runs, r->lists), rank_threads(2 * RUN), 0, r, args);
    rank_turn(r);
    for (r->run = RUN; r->runs > 1; r->run *= RUNS_MERGED) {
        LAUNCH(rank_merge, cuda_size((unsigned)div_up(r->capacity, BLOCK), r->lists), block, 0, r,
               args);
        rank_turn(r);
        r->runs = (unsigned)div_up(r->runs, RUNS_MERGED);
    }
}

/* Afterwards r->keys has each list's keys, `capacity` apart, and r->lengths how many they are. */
static inline void rank_launch(struct rank_lists *r, const struct kernel_args *args)
{
    if (r->parts)
        rank_launch_spread(r, args);
    else
        LAUNCH(rank_alone, cuda_size(r->lists), rank_threads(r->first.count), 0, r, args);
}

#endif
