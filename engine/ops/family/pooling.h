/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pooling operators share: shape rule, cost and the walk over windows of the references.
 */
#ifndef ENGINE_OPS_FAMILY_POOLING_H
#define ENGINE_OPS_FAMILY_POOLING_H

#include "engine/graph/op.h"
#include "engine/ops/lib/window.h"

/* Shapes of [N, C, spatial] pooled by the node's window: output 0, and i64 indices as output 1. */
enum status pooling_infer(const struct infer *c, struct error *err);
/* [N, C, 1, ...] */
enum status pooling_infer_global(const struct infer *c, struct error *err);

/* That a pool by the node's window makes of x something of the shape of dy. */
enum status pooling_check_gradient(const struct infer *c, const struct shape *x,
                                   const struct shape *dy, struct error *err);

/* Taps of an output position that lie inside the padded input: what count_include_pad counts. */
int64_t pooling_padded_taps(const struct window *w, int64_t position);

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

/* ---- cases ---- */

/* Windows that every pool takes. */
#define POOL_CASES                                                                                 \
    {.name = "2x2_stride_2",                                                                       \
     .inputs = "f32[2,5,8,10]",                                                                    \
     .attrs = "kernel_shape=[2,2] strides=[2,2]"},                                                 \
        {.name = "ceil",                                                                           \
         .inputs = "f32[1,3,13,13]",                                                               \
         .attrs = "kernel_shape=[3,3] strides=[2,2] ceil_mode=1"},                                 \
        {.name = "same_upper",                                                                     \
         .inputs = "f32[1,3,11,8]",                                                                \
         .attrs = "kernel_shape=[3,3] strides=[2,2] auto_pad=\"SAME_UPPER\""},                     \
        {.name = "same_lower",                                                                     \
         .inputs = "f32[1,3,11,8]",                                                                \
         .attrs = "kernel_shape=[3,2] strides=[2,3] auto_pad=\"SAME_LOWER\""},                     \
        {.name = "dilation",                                                                       \
         .inputs = "f32[1,3,12,13]",                                                               \
         .attrs = "kernel_shape=[3,2] dilations=[2,3]"},                                           \
        {.name = "1d",                                                                             \
         .inputs = "f32[2,4,21]",                                                                  \
         .attrs = "kernel_shape=[5] strides=[3] pads=[2,2]"},                                      \
    {                                                                                              \
        .name = "3d", .inputs = "f32[1,3,6,7,8]",                                                  \
        .attrs = "kernel_shape=[2,3,2] strides=[2,1,2] pads=[0,1,0,0,1,0]"                         \
    }
#define GLOBAL_POOL_CASES                                                                          \
    {.name = "image", .inputs = "f32[2,37,7,7]"},                                                  \
        {.name = "odd_sizes", .inputs = "f32[1,5,13,3]"},                                          \
        {.name = "one_element", .inputs = "f32[3,16,1,1]"},                                        \
        {.name = "1d", .inputs = "f32[2,6,29]"},                                                   \
    {                                                                                              \
        .name = "3d", .inputs = "f32[2,3,4,5,6]"                                                   \
    }

#endif
