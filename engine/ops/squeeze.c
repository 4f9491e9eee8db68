/* SPDX-License-Identifier: Apache-2.0
 * Squeeze: drops dimensions of size 1; axes are an attribute before opset 13, then an input. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axes", NULL};
static const struct attr_input attr_inputs[] = {{"axes", 1, 13}, {NULL, 0, 0}};

static enum status mark(const struct shape *x, const struct int_list *axes, bool *drop,
                        struct error *err)
{
    for (int k = 0; k < axes->count; k++) {
        int axis = shape_axis(x, axes->at[k]);
        if (axis < 0 || x->dim[axis] != 1) {
            char text[96];
            return FAIL(err, STATUS_FAILED, "axis %lld of %s has no size 1 to squeeze",
                        (long long)axes->at[k], shape_text(x, text));
        }
        drop[axis] = true;
    }
    for (int k = 0; axes->count < 0 && k < x->rank; k++)
        drop[k] = x->dim[k] == 1;
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list axes;
    bool drop[RANK_MAX] = {false};
    const struct shape *x = &c->in[0]->shape;
    struct shape y = {0};
    TRY(args_ints(&args, 1, "axes", &axes, err));
    TRY(mark(x, &axes, drop, err));
    for (int k = 0; k < x->rank; k++)
        if (!drop[k])
            y.dim[y.rank++] = x->dim[k];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "all", .inputs = "f32[1,3,1,4]"},
    {.name = "attribute", .inputs = "f32[1,3,1,4]", .attrs = "axes=[2]"},
    {.name = "input", .inputs = "f32[1,3,1,4,1] i64[2]=0,-1"},
    {.name = "scalar", .inputs = "i32[1]"},
};

REGISTER(op, squeeze) = {
    .name = "Squeeze",
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
