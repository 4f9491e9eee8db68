/* SPDX-License-Identifier: Apache-2.0
 * Unsqueeze: inserts dimensions of size 1; axes count in the result and are an attribute before
 * opset 13, then an input. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axes", NULL};
static const struct attr_input attr_inputs[] = {{"axes", 1, 13}, {NULL, 0, 0}};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list axes;
    bool fresh[RANK_MAX] = {false};
    const struct shape *x = &c->in[0]->shape;
    TRY(args_ints(&args, 1, "axes", &axes, err));
    if (axes.count < 0)
        return FAIL(err, STATUS_FAILED, "Unsqueeze without axes");
    struct shape y = {.rank = x->rank + axes.count};
    if (y.rank > RANK_MAX)
        return UNSUPPORTED(err, "rank %d; at most %d is supported", y.rank, RANK_MAX);
    for (int k = 0; k < axes.count; k++) {
        int axis = shape_axis(&y, axes.at[k]);
        if (axis < 0 || fresh[axis])
            return FAIL(err, STATUS_FAILED, "axis %lld of Unsqueeze does not fit rank %d",
                        (long long)axes.at[k], y.rank);
        fresh[axis] = true;
    }
    for (int k = 0, from = 0; k < y.rank; k++)
        y.dim[k] = fresh[k] ? 1 : x->dim[from++];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "attribute", .inputs = "f32[3,4]", .attrs = "axes=[0,3]"},
    {.name = "input", .inputs = "f32[3,4] i64[2]=-1,1"},
    {.name = "scalar", .inputs = "i64[]", .attrs = "axes=[0]"},
};

REGISTER(op, unsqueeze) = {
    .name = "Unsqueeze",
    .inputs_min = 1,
    .inputs_max = 2,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .alias = true,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .move = move_flat,
    .reference = reference_move,
    .gradient = gradient_of_alias,
    OP_CASES(cases),
};
