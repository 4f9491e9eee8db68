/* SPDX-License-Identifier: Apache-2.0
 * Gather: slices of the data along one axis, picked by a tensor of indices that takes the place of
 * that axis. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_index.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    int axis;
    const struct shape *x = &c->in[0]->shape, *index = &c->in[1]->shape;
    TRY(args_axis(&args, x, 0, &axis, err));
    int rank = x->rank - 1 + index->rank;
    if (rank > RANK_MAX)
        return UNSUPPORTED(err, "a result of rank %d; at most %d is supported", rank, RANK_MAX);
    struct shape y = {0};
    for (int k = 0; k < axis; k++)
        y.dim[y.rank++] = x->dim[k];
    for (int k = 0; k < index->rank; k++)
        y.dim[y.rank++] = index->dim[k];
    for (int k = axis + 1; k < x->rank; k++)
        y.dim[y.rank++] = x->dim[k];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    int axis;
    const struct ref_tensor *x = call->in[0], *index = call->in[1];
    TRY(args_axis(&args, &x->shape, 0, &axis, err));
    int64_t outer = shape_span(&x->shape, 0, axis), size = x->shape.dim[axis];
    int64_t inner = shape_span(&x->shape, axis + 1, x->shape.rank), to = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < index->count; k++) {
            int64_t at;
            TRY(index_wrap(call->node, index->i[k], size, &at, err));
            for (int64_t e = 0; e < inner; e++)
                ref_copy(call->out[0], to++, x, (o * size + at) * inner + e);
        }
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    struct shape x = gradient_shape(g, gradient_in(c, 0));
    int axis = shape_axis(&x, node_int(gradient_node(c), "axis", 0));
    (void)err;
    c->dx[0] = graph_node(g, op_gather_gradient.name, NULL, INPUTS(c->dy[0], gradient_in(c, 1)),
                          ATTRS(attr_int("axis", axis), attr_int("rows", x.dim[axis])));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[10,33] i64[2,3]"},
    {.name = "table", .inputs = "f32[50,64]! i32[40]{0:50}"},
    {.name = "negative", .inputs = "f32[7,5] i64[4]=-1,0,-7,6"},
    {.name = "columns", .inputs = "f32[3,10,4] i64[5]", .attrs = "axis=1"},
    {.name = "last", .inputs = "i32[3,10] i64[2,2]", .attrs = "axis=-1"},
    {.name = "scalar", .inputs = "f32[4,10] i64[]=2", .attrs = "axis=1"},
    {.name = "bytes", .inputs = "u8[10,3] i64[6]"},
};

REGISTER(op, gather) = {
    .name = "Gather",
    .narrow = NARROW_MOVE,
    .reads = READS_WHAT_IT_WRITES,
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_EITHER_WAY,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
