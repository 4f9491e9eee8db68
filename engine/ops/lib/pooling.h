/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pooling operators share: shape rule, cost and the walk over windows of the references.
 */
#ifndef ENGINE_OPS_LIB_POOLING_H
#define ENGINE_OPS_LIB_POOLING_H

#include "engine/graph/op.h"
#include "engine/ops/lib/window.h"

/* Shapes of [N, C, spatial] pooled by the node's window: output 0, and i64 indices as output 1. */
enum status pooling_infer(const struct infer *c, struct error *err);
/* [N, C, 1, ...] */
enum status pooling_infer_global(const struct infer *c, struct error *err);

/* `per_tap` FLOPs for each element of each window. */
void pooling_cost(const struct infer *c, double per_tap, struct cost *cost);
void pooling_cost_global(const struct infer *c, double per_element, struct cost *cost);

struct pooling {
    const struct node *node;
    struct window window;   /* rank 3 */
    const int64_t *offsets; /* window_offsets */
    int64_t positions, taps;
};

/* The value at an output position; x is one channel, plain. */
typedef double pooling_value(const struct pooling *p, const double *x, int64_t position);

/* Output 0 from input 0 (floats), channels in parallel. */
enum status pooling_reference(const struct ref_call *call, pooling_value *value, struct error *err);

/* The same over whole channels: value(x, count, node). */
void pooling_reference_global(const struct ref_call *call,
                              double (*value)(const double *x, int64_t count,
                                              const struct node *node));

#endif
