/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of ranks that learn together are summed over all of them, in units: pieces of memory in
 * which several gradients lie one after another, in the order in which the backward pass ends them,
 * so that the first ones are on their way while it still computes. */
#ifndef ENGINE_TRAIN_REDUCE_H
#define ENGINE_TRAIN_REDUCE_H

#include "engine/graph/graph.h"

/* PyTorch's first bucket has 1 MiB and its others 25; a unit that is as large as what fits into a
 * cache of the second level, times the ranks of a machine, is already moved at full speed by
 * shared memory, and ends sooner after the backward pass. */
enum { REDUCE_UNIT_BYTES = 4 << 20 };

/* Each gradient becomes its sum over `ranks`. Units have even sizes of about unit_bytes (0: a usual
 * size), but for a small first one; a gradient is never cut. `shared`, scalars or the like, travel
 * in the last unit: they become their sums as well. */
enum status reduce_gradients(struct graph *g, int ranks, int64_t unit_bytes, int count,
                             int *gradients, int shared_count, int *shared, struct error *err);

/* Dropout of a rank draws the mask that its samples would have as part of all ranks' batch. Where
 * values have the samples along their first axis, those of rank r follow those of rank r - 1. */
enum status part_dropout(struct graph *g, int rank, struct error *err);

#endif
