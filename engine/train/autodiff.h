/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/train/ makes a graph that learns of one that computes a loss: autodiff adds the
 * gradients, train.h the optimiser's updates and the states.
 *
 * Reverse differentiation: nodes are visited from the loss upwards, each operator's rule
 * (struct op, .gradient) adds nodes for its inputs' gradients, and the gradients of a value that
 * several nodes read are summed in the order in which they are found, which is the same each time.
 */
#ifndef ENGINE_TRAIN_AUTODIFF_H
#define ENGINE_TRAIN_AUTODIFF_H

#include "engine/graph/graph.h"

/* Adds the gradients of value `loss` (one element) by each of values by[0 .. count) to the graph,
 * as nodes of the backward phase: of[k] is that by by[k], of its shape and type; NONE where the
 * loss does not depend on it. seed: what the gradient by the loss itself is, a scalar; NONE: 1.
 * UNSUPPORTED, with the node and the reason, where an operator between them has no rule. */
enum status autodiff(struct graph *g, int loss, int seed, int count, const int *by, int *of,
                     struct error *err);

#endif
