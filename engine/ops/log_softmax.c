/* SPDX-License-Identifier: Apache-2.0
 * LogSoftmax. flatten = 1 (set by the importer for opsets before 13) joins the axes from `axis` on.
 */
#include "engine/ops/lib/axis.h"

static const char *const attrs[] = {"axis", "flatten", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct axis axis;
    TRY(axis_of_softmax(c->node, &c->in[0]->shape, &axis, err));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    double count = (double)shape_count(&c->out[0]->shape);
    cost->elementwise = 5 * count;
    cost->transcendentals = count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct axis axis;
    TRY(axis_of_softmax(call->node, &call->in[0]->shape, &axis, err));
    for (int64_t k = 0; k < axis.outer * axis.inner; k++) {
        int64_t start = axis_line(&axis, k);
        axis_log_softmax(&axis, call->in[0]->f + start, call->out[0]->f + start);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
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
    {.name = "rows_of_the_largest_block", .inputs = "f32[1,9001]{-5:5}"},
    {.name = "longest_row", .inputs = "f32[1,66000]{-9:9}"},
    {.name = "longest_odd_rows", .inputs = "f32[2,33001]{-9:9}"},
    {.name = "long_columns", .inputs = "f32[2,1100,24]{-9:9}", .attrs = "axis=1"},
    {.name = "long_odd_columns", .inputs = "f32[4200,6]{-9:9}", .attrs = "axis=0"},
};

REGISTER(op, log_softmax) = {
    .name = "LogSoftmax",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs_min = 1,
    .outputs_max = 1,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    OP_CASES(cases),
};
