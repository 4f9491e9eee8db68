/* SPDX-License-Identifier: Apache-2.0
 *
 * Selection only: no FLOPs. What is not selected does not show, not even a NaN. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape shape;
    char a[96], b[96], d[96];
    TRY(op_check_type(c, 0, OP_BOOL, err));
    if (c->in[1]->dtype != c->in[2]->dtype)
        return FAIL(err, STATUS_FAILED, "Where selects from %s and %s; the types must agree",
                    dtype_name(c->in[1]->dtype), dtype_name(c->in[2]->dtype));
    if (!shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &shape) ||
        !shape_broadcast(&shape, &c->in[2]->shape, &shape))
        return FAIL(err, STATUS_FAILED, "shapes %s, %s and %s of Where do not broadcast",
                    shape_text(&c->in[0]->shape, a), shape_text(&c->in[1]->shape, b),
                    shape_text(&c->in[2]->shape, d));
    infer_set(c, 0, c->in[1]->dtype, &shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *out = call->out[0];
    struct walk walk[3];
    for (int n = 0; n < 3; n++)
        walk_start(&walk[n], &out->shape, &call->in[n]->shape, 0);
    for (int64_t k = 0; k < out->count; k++) {
        int from = call->in[0]->i[walk[0].at] ? 1 : 2;
        if (out->f)
            out->f[k] = call->in[from]->f[walk[from].at];
        else
            out->i[k] = call->in[from]->i[walk[from].at];
        for (int n = 0; n < 3; n++)
            walk_next(&walk[n]);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    for (int k = 1; k <= 2; k++) {
        if (!c->wanted[k])
            continue;
        int zero = make_number(g, g->values[c->dy[0]].dtype, 0);
        int yes = k == 1 ? c->dy[0] : zero, no = k == 2 ? c->dy[0] : zero;
        int part = graph_node(g, gradient_node(c)->op->name, NULL,
                              INPUTS(gradient_in(c, 0), yes, no), NO_ATTRS);
        c->dx[k] = make_sum_to(g, part, gradient_in(c, k));
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "same", .inputs = "bool[2,3,4] f32[2,3,4] f32[2,3,4]"},
    {.name = "image", .inputs = "bool[2,5,3,7] f32[2,5,3,7] f32[2,5,3,7]"},
    {.name = "mask", .inputs = "bool[2,1,5,5] f32[2,3,5,5] f32[]=-10000"},
    {.name = "all_broadcast", .inputs = "bool[3,1,1] f32[2,1] f32[4]"},
    {.name = "special", .inputs = "bool[4]=1,0,1,0 f32[4]=1,nan,inf,2 f32[4]=nan,2,3,-inf"},
    {.name = "integer", .inputs = "bool[3,5] i64[5] i64[3,1]"},
    {.name = "byte", .inputs = "bool[67] u8[67] u8[1]=7"},
    {.name = "double", .inputs = "bool[3,5] f64[3,5] f64[5]"},
};

REGISTER(op, where) = {
    .name = "Where",
    .narrow = NARROW_MOVE,
    .inputs_min = 3,
    .int_inputs = 1u << 0,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
