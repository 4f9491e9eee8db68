/* SPDX-License-Identifier: Apache-2.0
 * Flatten: a matrix; rows are all dimensions before axis, columns those from it on. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    int64_t axis = node_int(c->node, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return FAIL(err, STATUS_FAILED, "axis %lld of Flatten is outside a tensor of rank %d",
                    (long long)axis, x->rank);
    int split = (int)(axis < 0 ? axis + x->rank : axis);
    struct shape y = shape_of(shape_span(x, 0, split), shape_span(x, split, x->rank));
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,3,4,5]"},
    {.name = "rows", .inputs = "f32[2,3,4,5]", .attrs = "axis=0"},
    {.name = "last", .inputs = "i64[2,3,4]", .attrs = "axis=-1"},
    {.name = "column", .inputs = "f32[2,3]", .attrs = "axis=2"},
};

REGISTER(op, flatten) = {
    .name = "Flatten",
    .inputs_min = 1,
    .attrs = attrs,
    .alias = true,
    .infer = infer,
    .move = move_flat,
    .reference = reference_move,
    .gradient = gradient_of_alias,
    OP_CASES(cases),
};
