/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of ranks that learn together are summed over all of them, in units: pieces of memory in
 * which several gradients lie one after another, in the order in which the backward pass ends them,
 * so that the first ones are on their way while it still computes. */
#ifndef ENGINE_TRAIN_REDUCE_H
#define ENGINE_TRAIN_REDUCE_H

#include "engine/graph/graph.h"

/* The usual size of a unit. PyTorch's first bucket has 1 MiB and its others 25; 4 MiB are already
 * moved at full speed by shared memory and by a few hosts, and end sooner after the backward pass.
 * Of N ranks a unit takes as many as 2 (N - 1) messages one after another, each of which is begun
 * in the time of some 32 KiB (20 us and 12 Gbit/s, or 2 us and 16 GB/s): units grow with the ranks
 * so that beginning messages takes no longer than moving the bytes. */
int64_t reduce_unit_bytes(int ranks);

/* Cuts what follows one another into units: ends[k] is the first that unit k does not have any
 * more. Units have even sizes of about unit_bytes, but for a small first one. How many there are;
 * at most `count`. */
int reduce_cut(int64_t unit_bytes, int count, const int64_t *bytes, int *ends);

/* How gradients travel. */
struct reduction {
    int ranks;
    int64_t unit_bytes; /* 0: as usual */
    const char *wire;   /* "f16" or "bf16": as what f32 crosses; NULL: as it is */
};

/* Each gradient becomes its sum over the ranks; none is cut. `shared`, scalars or the like, become
 * their sums as well: they travel in the last unit, or, with a wire, by themselves, as they are. */
enum status reduce_gradients(struct graph *g, const struct reduction *how, int count,
                             int *gradients, int shared_count, int *shared, struct error *err);

#endif
