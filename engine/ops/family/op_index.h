/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Gather and Scatter operators share: indices that may count from the end, places of
 * elements along one axis, and updates that add to what is there.
 */
#ifndef ENGINE_OPS_FAMILY_OP_INDEX_H
#define ENGINE_OPS_FAMILY_OP_INDEX_H

#include "engine/graph/op.h"

/* index in [-size, size) -> [0, size); fails with the operator's name when it is outside. */
enum status index_wrap(const struct node *node, int64_t index, int64_t size, int64_t *at,
                       struct error *err);
/* Element of a tensor of shape x that has the indices of element k of shape y, save along axis,
 * where it has `at`. */
int64_t index_along(const struct shape *x, const struct shape *y, int64_t k, int axis, int64_t at);

/* Whether all indices that the node takes (input 1, with these contents) lie within the data that
 * they are for; FAILED with the first that does not. OK for operators without indices. ONNX leaves
 * open what an index outside means: nothing that is worth a result. */
enum status index_check(const struct node *node, const struct shape *data,
                        const struct desc *indices, const void *contents, struct error *err);

enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN };

enum status reduction_of(const struct node *node, enum reduction *reduction, struct error *err);
/* One FLOP for each update, unless it replaces what is there. */
void scatter_cost(const struct infer *c, struct cost *cost);
/* The rule of operators that scatter: what updates replace has no gradient, and theirs is gathered.
 * UNSUPPORTED for products, maxima and minima. Of places that are named twice, which only "add"
 * makes sense of, all updates count. */
enum status scatter_gradient(const struct gradient_call *c, const struct op *scatter,
                             const struct op *gather, struct error *err);
/* y[to] = y[to] (reduction) x[from] */
void reduce_into(const struct ref_tensor *y, int64_t to, const struct ref_tensor *x, int64_t from,
                 enum reduction reduction);
/* y = x, same type and count. */
void ref_copy_all(const struct ref_tensor *y, const struct ref_tensor *x);

/* ScatterElements, and Scatter as it was called before opset 11. */
enum status scatter_elements_infer(const struct infer *c, struct error *err);
enum status scatter_elements_reference(const struct ref_call *call, struct error *err);

#endif
