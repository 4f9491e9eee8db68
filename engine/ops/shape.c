/* SPDX-License-Identifier: Apache-2.0
 * Shape: the dimensions of a tensor from `start` to before `end`. Known before the run, so that
 * constant folding always removes it. */
#include "engine/graph/op.h"

static const char *const attrs[] = {"start", "end", NULL};

static int clamp_axis(int64_t axis, int rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

static int first_of(const struct node *node, int rank)
{
    return clamp_axis(node_int(node, "start", 0), rank);
}

static enum status infer(const struct infer *c, struct error *err)
{
    (void)err;
    int rank = c->in[0]->shape.rank, first = first_of(c->node, rank);
    int end = clamp_axis(node_int(c->node, "end", rank), rank);
    struct shape y = shape_of(end > first ? end - first : 0);
    infer_set(c, 0, DTYPE_I64, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct shape *x = &call->in[0]->shape;
    int first = first_of(call->node, x->rank);
    for (int64_t k = 0; k < call->out[0]->count; k++)
        call->out[0]->i[k] = x->dim[first + k];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "all", .inputs = "f32[2,3,4]"},
    {.name = "part", .inputs = "u8[2,3,4,5]", .attrs = "start=-3 end=-1"},
    {.name = "beyond", .inputs = "f32[2,3]", .attrs = "start=-9 end=9"},
    {.name = "none", .inputs = "f32[2,3]", .attrs = "start=2 end=1"},
    {.name = "scalar", .inputs = "f32[]"},
};

REGISTER(op, shape) = {
    .name = "Shape",
    .reads = READS_SHAPE,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a shape",
    OP_CASES(cases),
};
