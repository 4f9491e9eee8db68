/* SPDX-License-Identifier: Apache-2.0
 * GatherElements: every element of the result names its own place along one axis of the data. */
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
    bool fits = x->rank == index->rank;
    for (int k = 0; fits && k < x->rank; k++)
        fits = k == axis || index->dim[k] <= x->dim[k];
    if (!fits) {
        char a[96], b[96];
        return FAIL(err, STATUS_FAILED, "indices %s do not fit data %s", shape_text(index, a),
                    shape_text(x, b));
    }
    infer_set(c, 0, c->in[0]->dtype, index);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    int axis;
    const struct ref_tensor *x = call->in[0], *index = call->in[1];
    TRY(args_axis(&args, &x->shape, 0, &axis, err));
    for (int64_t k = 0; k < index->count; k++) {
        int64_t at;
        TRY(index_wrap(call->node, index->i[k], x->shape.dim[axis], &at, err));
        ref_copy(call->out[0], k, x, index_along(&x->shape, &index->shape, k, axis, at));
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int data = gradient_in(c, 0), index = gradient_in(c, 1);
    struct shape shape = gradient_shape(g, data);
    int64_t axis = node_int(gradient_node(c), "axis", 0);
    (void)err;
    c->dx[0] = graph_node(g, op_scatter_elements.name, NULL,
                          INPUTS(make_zeros(g, g->values[data].dtype, &shape), index, c->dy[0]),
                          ATTRS(attr_int("axis", axis), attr_string("reduction", "add")));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[10,4] i64[3,4]"},
    {.name = "columns", .inputs = "f32[5,10] i64[5,7]", .attrs = "axis=1"},
    {.name = "negative", .inputs = "f32[3,3] i32[2,3]=-1,-2,0,-2,0,0"},
    {.name = "three", .inputs = "i64[2,3,10] i64[2,3,4]", .attrs = "axis=-1"},
    {.name = "smaller", .inputs = "f32[4,10,4] i64[2,5,3]", .attrs = "axis=1"},
};

REGISTER(op, gather_elements) = {
    .name = "GatherElements",
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
