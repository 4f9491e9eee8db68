/* SPDX-License-Identifier: Apache-2.0
 *
 * Micro-batches: gradients of several executions are summed in states, and the weights move in the
 * last of them, by the mean. So a batch that does not fit into memory is taken in parts. */
#ifndef ENGINE_TRAIN_ACCUMULATE_H
#define ENGINE_TRAIN_ACCUMULATE_H

#include "engine/graph/graph.h"

/* Replaces gradients[k], by weights[k], by the sum of `batches` executions so far. step: the number
 * of this execution, from 1 on. Returns the number of the weights' step, which is 0 (nothing moves)
 * unless this execution is the last of its group. */
int accumulate_gradients(struct graph *g, int count, const int *weights, int *gradients, int step,
                         int64_t batches);

#endif
