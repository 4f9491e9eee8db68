/* SPDX-License-Identifier: Apache-2.0
 * Tile: the input repeated along each axis. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list repeats;
    struct shape y = c->in[0]->shape;
    TRY(args_ints(&args, 1, NULL, &repeats, err));
    if (repeats.count != y.rank)
        return FAIL(err, STATUS_FAILED, "%d repeats for a tensor of rank %d", repeats.count,
                    y.rank);
    for (int k = 0; k < y.rank; k++) {
        if (repeats.at[k] < 0)
            return FAIL(err, STATUS_FAILED, "repeats[%d] of Tile is negative", k);
        y.dim[k] *= repeats.at[k];
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    (void)err;
    const struct shape *x = args_in(args, 0), *y = args_out(args, 0);
    *m = (struct move){.loop_count = 2 * x->rank};
    for (int k = 0; k < x->rank; k++) {
        int64_t size = x->dim[k];
        m->loops[2 * k] = (struct move_loop){.extent = size ? y->dim[k] / size : 0,
                                             .in_axis = k,
                                             .out_axis = k,
                                             .in_step = 0,
                                             .out_step = size};
        m->loops[2 * k + 1] = (struct move_loop){
            .extent = size, .in_axis = k, .out_axis = k, .in_step = 1, .out_step = 1};
    }
    return STATUS_OK;
}

/* The sum over the copies, axis by axis. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    struct shape x = gradient_shape(g, gradient_in(c, 0)), y = gradient_shape(g, c->dy[0]);
    int dy = c->dy[0];
    for (int k = 0; k < x.rank; k++) {
        if (x.dim[k] == y.dim[k] || shape_count(&y) == 0)
            continue;
        int64_t rows = shape_span(&y, 0, k), inner = shape_span(&y, k + 1, y.rank), axis = 1;
        struct shape apart = shape_of(rows, y.dim[k] / x.dim[k], x.dim[k] * inner);
        y.dim[k] = x.dim[k];
        dy = make_reshaped(g, make_sum(g, make_reshaped(g, dy, &apart), 1, &axis, false), &y);
    }
    c->dx[0] = shape_equal(&x, &y) ? dy : make_zeros(g, g->values[dy].dtype, &x);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matrix", .inputs = "f32[2,3] i64[2]=2,3"},
    {.name = "image", .inputs = "f32[1,3,4,5] i64[4]=2,1,3,2"},
    {.name = "rows", .inputs = "f32[2,64] i64[2]=1,4"},
    {.name = "single", .inputs = "f32[3,1] i64[2]=1,50"},
    {.name = "none", .inputs = "i64[3] i64[1]=0"},
};

REGISTER(op, tile) = {
    .name = "Tile",
    .inputs_min = 2,
    .const_inputs = 1u << 1,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
