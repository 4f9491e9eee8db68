/* SPDX-License-Identifier: Apache-2.0
 * GatherND: rows of the last axis of the indices are places in the data; the first batch_dims axes
 * of data and indices go together. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_index.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"batch_dims", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *index = &c->in[1]->shape;
    int64_t batch = node_int(c->node, "batch_dims", 0);
    int64_t depth = index->rank ? index->dim[index->rank - 1] : 0;
    if (batch < 0 || batch >= index->rank || batch + depth > x->rank || depth < 1)
        return FAIL(err, STATUS_FAILED,
                    "indices of depth %lld with batch_dims %lld for data of rank %d",
                    (long long)depth, (long long)batch, x->rank);
    for (int k = 0; k < batch; k++)
        if (x->dim[k] != index->dim[k])
            return FAIL(err, STATUS_FAILED, "batch axis %d of data and indices differ", k);
    if (index->rank - 1 + x->rank - batch - depth > RANK_MAX)
        return UNSUPPORTED(err, "a result of rank above %d", RANK_MAX);
    struct shape y = shape_from(index->rank - 1, index->dim);
    for (int k = (int)(batch + depth); k < x->rank; k++)
        y.dim[y.rank++] = x->dim[k];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *index = call->in[1];
    int batch = (int)node_int(call->node, "batch_dims", 0);
    int depth = (int)index->shape.dim[index->shape.rank - 1];
    int64_t rows = shape_span(&index->shape, 0, index->shape.rank - 1);
    int64_t per_batch = shape_span(&index->shape, batch, index->shape.rank - 1);
    int64_t inner = shape_span(&x->shape, batch + depth, x->shape.rank);
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = row / per_batch;
        for (int k = 0; k < depth; k++) {
            int64_t at, size = x->shape.dim[batch + k];
            TRY(index_wrap(call->node, index->i[row * depth + k], size, &at, err));
            from = from * size + at;
        }
        for (int64_t e = 0; e < inner; e++)
            ref_copy(call->out[0], row * inner + e, x, from * inner + e);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int data = gradient_in(c, 0), index = gradient_in(c, 1);
    struct shape shape = gradient_shape(g, data);
    if (node_int(gradient_node(c), "batch_dims", 0) != 0)
        return UNSUPPORTED(err, "GatherND with batch_dims has no gradient: ScatterND has none");
    c->dx[0] = graph_node(g, op_scatter_nd.name, NULL,
                          INPUTS(make_zeros(g, g->values[data].dtype, &shape), index, c->dy[0]),
                          ATTRS(attr_string("reduction", "add")));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "elements", .inputs = "f32[10,10] i64[5,2]"},
    {.name = "rows", .inputs = "f32[10,3,4] i64[2,3,1]"},
    {.name = "negative", .inputs = "i32[4,5,2] i64[2,2]=-1,-5,3,4"},
    {.name = "batch", .inputs = "f32[2,10,4] i64[2,3,1]", .attrs = "batch_dims=1"},
    {.name = "batches", .inputs = "f32[2,3,10] i64[2,3,4,1]", .attrs = "batch_dims=2"},
    {.name = "vector", .inputs = "i64[13] i32[7,1]=12,-13,0,5,5,-1,3"},
    {.name = "bytes", .inputs = "u8[10,10,7] i64[5,2]"},
    {.name = "middle", .inputs = "f32[3,10,5,17] i32[3,1,7,1]{-5:5}", .attrs = "batch_dims=1"},
    {.name = "many", .inputs = "f32[10,10,10] i64[3001,3]{-10:10}"},
    {.name = "wide", .inputs = "f32[10,1537] i64[23,1]{-10:10}"},
    {.name = "none", .inputs = "f32[10,3] i64[0,1]"},
    {.name = "empty_rows", .inputs = "f32[10,0] i64[4,1]"},
};

REGISTER(op, gather_nd) = {
    .name = "GatherND",
    .narrow = NARROW_MOVE,
    .reads = READS_WHAT_IT_WRITES,
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_ROWS,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
