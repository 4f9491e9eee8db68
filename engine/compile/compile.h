/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/compile/ makes an executable (engine/run/exe.h) of a graph: passes rewrite a copy
 * of it, every node is lowered to a step, the tuner chooses a kernel for each step, and the memory
 * plan gives every tensor a place. This header and need.h are all that other folders use of it.
 */
#ifndef ENGINE_COMPILE_COMPILE_H
#define ENGINE_COMPILE_COMPILE_H

#include "engine/graph/cost.h"
#include "engine/run/exe.h"

/* Slow: compiles, tunes and packs weights. exe_free gives all of it back. The graph outlives the
 * executable, which reads the contents of its constants. */
enum status exe_new(const struct graph *graph, const struct exe_options *options, struct exe **out,
                    struct error *err);

/* The steps that there would be, for a device that need not be there: nothing is tuned, and nothing
 * can be run. For exe_step_at, whose kernels are NULL, exe_graph and exe_passes. */
enum status exe_outline(const struct graph *graph, const struct exe_options *options,
                        struct exe **out, struct error *err);

/* The patterns that have operators of their own (normalisations, GELU) become those, in place: what
 * a graph needs before gradients are added, for gradients hide patterns. */
enum status graph_find_patterns(struct graph *graph, struct error *err);

/* What the graph costs when it computes in `precision`: its own FLOPs, and the bytes of the types
 * that its tensors then have; f8 factors are read as they are. */
enum status graph_cost_in(const struct graph *graph, enum precision precision,
                          struct graph_cost *cost, struct error *err);

#endif
