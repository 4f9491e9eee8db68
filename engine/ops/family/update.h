/* SPDX-License-Identifier: Apache-2.0
 *
 * What optimisers share (struct op, .update). One says what one element of a weight becomes:
 *
 *     static void step(const struct update_step *s, double gradient, double *weight, double *slot)
 *
 * and is registered by UPDATE_OP. slot[k] is the element of slot k. Norms over whole tensors, for
 * those that scale by them, are computed before the first element. */
#ifndef ENGINE_OPS_LIB_UPDATE_H
#define ENGINE_OPS_LIB_UPDATE_H

#include "engine/graph/op.h"

/* Inputs and outputs per weight: it, its gradient, its slots; the next one and its next slots. */
static inline int update_width(const struct op *op)
{
    return 2 + op->update->slots;
}

static inline int update_weights(const struct node *node)
{
    return (node->op_inputs - UPDATE_WEIGHTS) / update_width(node->op);
}

/* What holds for the whole step. */
struct update_step {
    const struct node *node;
    double rate, scale;
    int64_t step; /* from 1 on */
};

enum { UPDATE_SLOTS_MAX = 2 };

enum status update_infer(const struct infer *c, struct error *err);

/* Runs `each` over all elements of all weights. */
enum status update_reference(const struct ref_call *call,
                             void (*each)(const struct update_step *s, double gradient,
                                          double *weight, double *slot),
                             struct error *err);

#endif
