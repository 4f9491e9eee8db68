/* SPDX-License-Identifier: Apache-2.0
 *
 * What Softmax, LogSoftmax and Hardmax share: attributes, rules and test cases. */
#ifndef ENGINE_OPS_FAMILY_SOFTMAX_H
#define ENGINE_OPS_FAMILY_SOFTMAX_H

#include "engine/ops/lib/axis.h"

static const char *const softmax_attrs[] = {"axis", "flatten", NULL};

static inline enum status softmax_infer(const struct infer *c, struct error *err)
{
    struct axis axis;
    TRY(axis_of_softmax(c->node, &c->in[0]->shape, &axis, err));
    return infer_same(c, err);
}

/* Of the two that take exponentials. */
static inline void softmax_cost(const struct infer *c, struct cost *cost)
{
    double count = (double)shape_count(&c->out[0]->shape);
    cost->elementwise = 5 * count;
    cost->transcendentals = count;
}

/* Computes every line of the node from where it begins in x and y, which is zero. */
static inline enum status softmax_reference(const struct ref_call *call,
                                            void (*line)(const struct axis *axis, const double *x,
                                                         double *y),
                                            struct error *err)
{
    struct axis axis;
    TRY(axis_of_softmax(call->node, &call->in[0]->shape, &axis, err));
    for (int64_t k = 0; axis.size && k < axis.outer * axis.inner; k++) {
        int64_t start = axis_line(&axis, k);
        line(&axis, call->in[0]->f + start, call->out[0]->f + start);
    }
    return STATUS_OK;
}

/* A line of the node lies along the axes from *first to before *end. */
static inline void softmax_axes(const struct node *node, int rank, int *first, int *end)
{
    bool flatten = node_int(node, "flatten", 0) != 0;
    int64_t axis = node_int(node, "axis", flatten ? 1 : -1);
    *first = (int)(axis < 0 ? axis + rank : axis);
    *end = flatten ? rank : *first + 1;
}

static const struct op_case softmax_cases[] = {
    {.name = "rows", .inputs = "f32[9,67]{-5:5}"},
    {.name = "long_rows", .inputs = "f32[3,1000]{-5:5}"},
    {.name = "short_rows", .inputs = "f32[40,3]{-5:5}"},
    {.name = "large_values", .inputs = "f32[4,33]{-300:300}"},
    {.name = "one_element", .inputs = "f32[5,1]"},
    {.name = "vector", .inputs = "f32[31]"},
    {.name = "scores", .inputs = "f32[2,4,16,16]{-5:5}"},
    {.name = "axis_1", .inputs = "f32[2,21,5,7]{-5:5}", .attrs = "axis=1"},
    {.name = "axis_0", .inputs = "f32[19,6]{-5:5}", .attrs = "axis=0"},
    {.name = "axis_m2", .inputs = "f32[2,9,12]{-5:5}", .attrs = "axis=-2"},
    {.name = "flattened", .inputs = "f32[3,4,5]{-5:5}", .attrs = "flatten=1"},
    {.name = "flattened_axis_2", .inputs = "f32[3,4,5,2]{-5:5}", .attrs = "flatten=1 axis=2"},
    /* Lines that devices keep in registers of a block, or split over blocks. */
    {.name = "rows_of_a_block", .inputs = "f32[2,1500]{-5:5}"},
    {.name = "rows_of_a_large_block", .inputs = "f32[2,2600]{-5:5}"},
    {.name = "odd_rows_of_the_largest_block", .inputs = "f32[1,9001]{-5:5}"},
    {.name = "rows_of_the_largest_block", .inputs = "f32[1,9000]{-5:5}"},
    {.name = "longest_row", .inputs = "f32[1,66000]{-9:9}"},
    {.name = "longest_odd_rows", .inputs = "f32[2,33001]{-9:9}"},
    {.name = "long_columns", .inputs = "f32[2,1100,24]{-9:9}", .attrs = "axis=1"},
    {.name = "long_odd_columns", .inputs = "f32[4200,6]{-9:9}", .attrs = "axis=0"},
    {.name = "ties", .inputs = "f32[2,4]=3,1,3,0,0,2,1,2"},
};

#endif
