/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/reference/ computes what is right: whole graphs in double, single nodes as the
 * kernel of last resort or before the run (fold.h), and how far another result is from that. */
#ifndef ENGINE_REFERENCE_REFERENCE_H
#define ENGINE_REFERENCE_REFERENCE_H

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"

/* Runs the graph as it is, all floats in double, through the operators' references. inputs[i] and
 * outputs[i] belong to graph input and output i; inputs NULL: made by their fills. Weights are the
 * graph's. outputs are allocated; free them with ref_release. A value is given back after its last
 * reader, but not an input of the caller's. */
enum status reference_run(const struct graph *graph, const struct ref_tensor *inputs,
                          struct ref_tensor *outputs, struct pool *pool, struct error *err);
/* The same, and after each node its watcher is called: values[v] is value v of the graph, for what
 * the node read and for its results, whose contents may be changed before others read them. */
struct reference_watch {
    enum status (*after)(void *context, const struct node *node, const struct ref_tensor *values,
                         struct error *err);
    void *context;
};
enum status reference_run_watched(const struct graph *graph, const struct ref_tensor *inputs,
                                  struct ref_tensor *outputs, const struct reference_watch *watch,
                                  struct pool *pool, struct error *err);
/* What the fills make of every input; allocated, to be released one by one also after a failure. */
enum status reference_inputs(const struct graph *graph, struct ref_tensor *inputs,
                             struct pool *pool, struct error *err);
/* Between two runs: what the first one left in the states is what the second one finds. */
void reference_carry(const struct graph *graph, struct ref_tensor *inputs,
                     const struct ref_tensor *outputs);
/* Per value: the node after which reference_run gives it back; node_count: an output, NONE: nobody
 * reads it. */
void graph_last_uses(const struct graph *g, int *last);

/* The kernel that computes every node through its operator's reference. Always accepts. */
extern const struct kernel kernel_reference;

/* Applies node->posts to out; in has all inputs of the node. */
void ref_posts(const struct node *node, const struct ref_tensor *const *in,
               const struct ref_tensor *out);

/* ---- how far a result is from it ---- */

/* max |a - b| / max |b| over one tensor of floats; exact comparison (0 or 1) for integers. A NaN or
 * an infinity on one side alone is an infinite error, on both sides none;
 * engine/reference/ref_odd.h counts them. */
double ref_rel_error(const struct ref_tensor *a, const struct ref_tensor *b);
/* The same for sets of rows (of the last axis) in any order: each row of a is paired with the
 * nearest row of b that is still free; the error is the largest |a - b| of a pair, relative to the
 * largest |b| of its column. */
double ref_set_error(const struct ref_tensor *a, const struct ref_tensor *b);
/* ref_rel_error of floats that lie in native memory in the order of `expected`, by the threads of
 * the pool; NaN when memory is short. looked_at: which tiles of so many elements are compared, of
 * the others nothing is read; NULL: all. */
enum { REF_TILE = 1 << 13 };
double ref_native_error(struct pool *pool, enum dtype dtype, const void *data,
                        const struct ref_tensor *expected, const bool *looked_at);

#endif
