/* SPDX-License-Identifier: Apache-2.0
 * OneHot: a new axis of size depth, values[1] where the index says, values[0] elsewhere. Negative
 * indices count from the end; an index outside [-depth, depth) gives values[0] throughout. */
#include <math.h>

#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", NULL};

static enum status place(const struct node *node, int rank, int *axis, struct error *err)
{
    int64_t given = node_int(node, "axis", -1);
    if (given < -(rank + 1) || given > rank)
        return FAIL(err, STATUS_FAILED, "axis %lld of OneHot is outside a result of rank %d",
                    (long long)given, rank + 1);
    *axis = (int)(given < 0 ? given + rank + 1 : given);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    double depth;
    int count, axis;
    const struct shape *x = &c->in[0]->shape;
    TRY(infer_floats(c, 1, &depth, 1, &count, err));
    TRY(place(c->node, x->rank, &axis, err));
    if (x->rank + 1 > RANK_MAX || count != 1 || !(depth >= 0 && depth < 0x1p40))
        return UNSUPPORTED(err, "OneHot of depth %g and rank %d", depth, x->rank + 1);
    struct shape y = {.rank = x->rank + 1};
    for (int k = 0, from = 0; k < y.rank; k++)
        y.dim[k] = k == axis ? (int64_t)depth : x->dim[from++];
    infer_set(c, 0, c->in[2]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    int axis;
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    TRY(place(call->node, x->shape.rank, &axis, err));
    int64_t depth = y->shape.dim[axis], inner = shape_span(&y->shape, axis + 1, y->shape.rank);
    for (int64_t k = 0; k < y->count; k++) {
        int64_t slot = k / inner % depth, from = k / (inner * depth) * inner + k % inner;
        double index = trunc(ref_get(x, from));
        index = index < 0 ? index + (double)depth : index;
        ref_copy(y, k, call->in[2], index == (double)slot ? 1 : 0);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last", .inputs = "i64[7] i64[]=10 f32[2]=0,1"},
    {.name = "axis", .inputs = "i64[3,4] i32[1]=10 f32[2]=-1,2.5", .attrs = "axis=1"},
    {.name = "outside", .inputs = "i64[5]=-11,-10,-1,9,10 i64[]=10 i64[2]=3,5", .attrs = "axis=0"},
    {.name = "float", .inputs = "f32[3]=1,0,2 f32[]=3 f32[2]=0,1"},
    {.name = "smooth", .inputs = "i64[2,3]=4,-1,0,7,-8,2 i64[]=7 f32[2]=0.0625,0.625"},
    {.name = "wide", .inputs = "i32[8]=0,3,20,-1,-21,7,21,12 i64[]=21 f32[2]=0,1"},
};

REGISTER(op, one_hot) = {
    .name = "OneHot",
    .narrow = NARROW_MOVE,
    .narrow_inputs = 1u << 2,
    .inputs_min = 3,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its input is an index",
    OP_CASES(cases),
};
