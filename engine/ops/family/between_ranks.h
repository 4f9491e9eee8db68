/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators between ranks share (struct op, .between_ranks). Each has an attribute `ranks`:
 * how many there are. A reference, like every executable without a communicator, is one rank alone;
 * for a graph of several ranks it computes what rank 0 would get if all others held zeros. */
#ifndef ENGINE_OPS_FAMILY_BETWEEN_RANKS_H
#define ENGINE_OPS_FAMILY_BETWEEN_RANKS_H

#include "engine/graph/op.h"

/* How many ranks; FAILED where the attribute makes no sense. */
enum status between_ranks_infer(const struct infer *c, int64_t *ranks, struct error *err);
/* Input 0, which is cut along axis 0 into as many equal parts as there are ranks. */
enum status between_ranks_infer_cut(const struct infer *c, int64_t *ranks, struct error *err);
/* FAILED unless the attribute `wire` is missing, or f16 or bf16 for an input of f32. */
enum status between_ranks_infer_wire(const struct infer *c, struct error *err);
/* As what elements cross; DTYPE_NONE: as they are. */
enum dtype between_ranks_wire(const struct node *node);
/* The first `count` elements of output 0 are those of input 0. */
void between_ranks_copy(const struct ref_call *call, int64_t count);
/* The gradient by input 0 is what operator `op` makes of the result's. */
void between_ranks_gradient(const struct gradient_call *c, const struct op *op);

#endif
