/* SPDX-License-Identifier: Apache-2.0
 * Concat: inputs one after the other along an axis. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", NULL};

/* Whether b can stand beside a along axis. */
static bool fits(const struct shape *a, const struct shape *b, int axis)
{
    if (a->rank != b->rank)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (k != axis && a->dim[k] != b->dim[k])
            return false;
    return true;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct shape y = c->in[0]->shape;
    int axis;
    TRY(args_axis(&args, &y, 1, &axis, err)); /* before opset 4 the axis was optional */
    for (int k = 1; k < c->in_count; k++) {
        char a[96], b[96];
        if (!c->in[k])
            return FAIL(err, STATUS_FAILED, "input %d of Concat is missing", k);
        if (c->in[k]->dtype != c->in[0]->dtype || !fits(&y, &c->in[k]->shape, axis))
            return FAIL(err, STATUS_FAILED, "input %d (%s %s) does not fit %s %s along axis %d", k,
                        dtype_name(c->in[k]->dtype), shape_text(&c->in[k]->shape, a),
                        dtype_name(c->in[0]->dtype), shape_text(&y, b), axis);
        y.dim[axis] += c->in[k]->shape.dim[axis];
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    int axis;
    TRY(args_axis(args, args_in(args, 0), 1, &axis, err));
    move_over(m, args_in(args, part));
    m->input = part;
    for (int k = 0; k < part; k++)
        m->out_start[axis] += args_in(args, k)->dim[axis];
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int axis = shape_axis(&g->values[c->dy[0]].shape, node_int(gradient_node(c), "axis", 1));
    int64_t start[RANK_MAX] = {0};
    for (int k = 0; k < gradient_node(c)->op_inputs; k++) {
        struct shape part = gradient_shape(g, gradient_in(c, k));
        if (c->wanted[k])
            c->dx[k] = make_slice(g, c->dy[0], start, &part);
        start[axis] += part.dim[axis];
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "channels", .inputs = "f32[2,3,4,5] f32[2,7,4,5] f32[2,1,4,5]", .attrs = "axis=1"},
    {.name = "wide", .inputs = "f32[1,32,6,6] f32[1,16,6,6]", .attrs = "axis=1"},
    {.name = "rows", .inputs = "f32[2,3] f32[4,3]", .attrs = "axis=0"},
    {.name = "last", .inputs = "f32[3,1] f32[3,2] f32[3,5]", .attrs = "axis=-1"},
    {.name = "one", .inputs = "f32[2,3]", .attrs = "axis=1"},
    {.name = "empty", .inputs = "f32[2,0] f32[2,3]", .attrs = "axis=1"},
    {.name = "integers", .inputs = "i64[1] i64[2]", .attrs = "axis=0"},
    {.name = "bytes", .inputs = "u8[3,5,2] u8[3,4,2]", .attrs = "axis=1"},
};

REGISTER(op, concat) = {
    .name = "Concat",
    .moves_in_passing = true,
    .inputs_min = 1,
    .inputs_max = -1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
