/* SPDX-License-Identifier: Apache-2.0
 *
 * Between native tensors and those of the reference. The reference kernel, reference_run and the
 * judges of other kernels share these. */
#ifndef ENGINE_REFERENCE_REFERENCE_H
#define ENGINE_REFERENCE_REFERENCE_H

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"

/* Storage for `tensor` (dtype, shape and count set) inside memory of count * 8 bytes. */
void ref_place(struct ref_tensor *tensor, void *memory);
/* Native memory of any layout into a placed tensor, and back (rounded to the type). */
void ref_load(const struct ref_tensor *tensor, const struct desc *desc, const void *data);
void ref_store(const struct ref_tensor *tensor, const struct desc *desc, void *data);
/* ref_rel_error of floats that lie in native memory in the order of `expected`, by the threads of
 * the pool; NaN when memory is short. looked_at: which tiles of so many elements are compared, of
 * the others nothing is read; NULL: all. */
enum { REF_TILE = 1 << 13 };
double ref_native_error(struct pool *pool, enum dtype dtype, const void *data,
                        const struct ref_tensor *expected, const bool *looked_at);
/* Integers wrap to the width of their type, as the hardware would. */
void ref_wrap(const struct ref_tensor *tensor);
double act_value(enum act act, float a, float b, double x);
/* Applies node->posts to out; in has all inputs of the node. */
void ref_posts(const struct node *node, const struct ref_tensor *const *in,
               const struct ref_tensor *out);

/* Per value: the node after which reference_run gives it back; node_count: an output, NONE: nobody
 * reads it. */
void graph_last_uses(const struct graph *g, int *last);

/* The kernel that computes every node through its operator's reference. Always accepts. */
extern const struct kernel kernel_reference;

#endif
