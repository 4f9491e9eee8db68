/* SPDX-License-Identifier: Apache-2.0
 * Expand: broadcasts the input with a shape; either may have the larger size. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list want;
    struct shape y;
    TRY(args_ints(&args, 1, NULL, &want, err));
    if (want.count > RANK_MAX)
        return UNSUPPORTED(err, "a shape of rank %d; at most %d is supported", want.count,
                           RANK_MAX);
    struct shape shape = shape_from(want.count, want.at);
    if (!shape_broadcast(&c->in[0]->shape, &shape, &y)) {
        char a[96], b[96];
        return FAIL(err, STATUS_FAILED, "%s does not expand to %s", shape_text(&c->in[0]->shape, a),
                    shape_text(&shape, b));
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    (void)err;
    const struct shape *x = args_in(args, 0), *y = args_out(args, 0);
    int lead = y->rank - x->rank;
    move_over(m, y);
    for (int k = 0; k < y->rank; k++) {
        bool own = k >= lead && x->dim[k - lead] == y->dim[k];
        m->loops[k].in_axis = own ? k - lead : MOVE_FLAT;
        m->loops[k].in_step = own ? 1 : 0;
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    c->dx[0] = make_sum_to(g, c->dy[0], gradient_in(c, 0));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[1,5] i64[2]=4,5"},
    {.name = "columns", .inputs = "f32[4,1] i64[2]=4,37"},
    {.name = "rank", .inputs = "f32[3,1] i64[4]=2,1,1,6"},
    {.name = "heads", .inputs = "f32[2,2,1,3,16] i64[5]=2,2,4,3,16"},
    {.name = "scalar", .inputs = "i64[] i64[2]=3,5"},
    {.name = "same", .inputs = "bool[2,3] i64[1]=1"},
};

REGISTER(op, expand) = {
    .name = "Expand",
    .moves_in_passing = true,
    .inputs_min = 2,
    .const_inputs = 1u << 1,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
