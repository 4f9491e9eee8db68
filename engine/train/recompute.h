/* SPDX-License-Identifier: Apache-2.0
 *
 * Recomputation: less memory for more time (Chen et al. 2016, "Training Deep Nets with Sublinear
 * Memory Cost"). The forward nodes are cut into segments. Values that cross a cut are kept; all
 * others that the backward pass reads are computed again, segment by segment, just before it does.
 */
#ifndef ENGINE_TRAIN_RECOMPUTE_H
#define ENGINE_TRAIN_RECOMPUTE_H

#include "engine/graph/graph.h"

/* Of a graph with gradients. segments 0: about the square root of the number of forward nodes; more
 * than half of these are refused. Cuts are moved to where few bytes cross them. */
enum status recompute_forward(struct graph *g, int segments, struct error *err);

#endif
