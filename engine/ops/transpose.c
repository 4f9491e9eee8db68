/* SPDX-License-Identifier: Apache-2.0
 * Transpose: axis k of the result is axis perm[k] of the input. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"perm", NULL};

static enum status permutation(const struct node *node, int rank, int *perm, struct error *err)
{
    int64_t given[RANK_MAX];
    int count = node_ints(node, "perm", given, RANK_MAX);
    unsigned seen = 0;
    for (int k = 0; k < rank; k++) {
        int64_t axis = count ? k < count ? given[k] : -1 : rank - 1 - k;
        if (axis < 0 || axis >= rank || (count && count != rank) || (seen >> axis & 1u))
            return FAIL(err, STATUS_FAILED, "perm is no permutation of %d axes", rank);
        seen |= 1u << axis;
        perm[k] = (int)axis;
    }
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    int perm[RANK_MAX];
    const struct shape *x = &c->in[0]->shape;
    struct shape y = {.rank = x->rank};
    TRY(permutation(c->node, x->rank, perm, err));
    for (int k = 0; k < x->rank; k++)
        y.dim[k] = x->dim[perm[k]];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    int perm[RANK_MAX];
    const struct shape *x = args_in(args, 0);
    TRY(permutation(args->node, x->rank, perm, err));
    move_over(m, x);
    for (int k = 0; k < x->rank; k++) {
        m->loops[k].extent = x->dim[perm[k]];
        m->loops[k].in_axis = perm[k];
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int perm[RANK_MAX], rank = gradient_shape(g, c->dy[0]).rank;
    int64_t back[RANK_MAX];
    TRY(permutation(gradient_node(c), rank, perm, err));
    for (int k = 0; k < rank; k++)
        back[perm[k]] = k;
    c->dx[0] = make_permuted(g, c->dy[0], rank, back);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matrix", .inputs = "f32[37,50]"},
    {.name = "tiles", .inputs = "f32[64,32]"},
    {.name = "heads", .inputs = "f32[2,7,3,16]", .attrs = "perm=[0,2,1,3]"},
    {.name = "keys", .inputs = "f32[2,20,3,17]", .attrs = "perm=[0,2,3,1]"},
    {.name = "to_last", .inputs = "f32[2,5,7,9]", .attrs = "perm=[0,2,3,1]"},
    {.name = "to_first", .inputs = "f32[2,7,9,3]", .attrs = "perm=[0,3,1,2]"},
    {.name = "five", .inputs = "i32[2,3,4,5,6]", .attrs = "perm=[4,1,3,0,2]"},
    {.name = "bytes", .inputs = "u8[19,35]{0:256}"},
    {.name = "halves", .inputs = "f16[17,2,9]", .attrs = "perm=[2,1,0]"},
    {.name = "longs", .inputs = "i64[9,11]"},
    {.name = "vector", .inputs = "f32[9]"},
    {.name = "empty", .inputs = "f32[0,3]"},
};

REGISTER(op, transpose) = {
    .name = "Transpose",
    .moves_in_passing = true,
    .reorders = true,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
