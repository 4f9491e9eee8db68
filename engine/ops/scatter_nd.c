/* SPDX-License-Identifier: Apache-2.0
 * ScatterND: the data with updates put, added, multiplied, maxed or minned in at the places that
 * rows of the last axis of the indices name. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/op_index.h"

static const char *const attrs[] = {"reduction", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    enum reduction reduction;
    const struct shape *x = &c->in[0]->shape, *index = &c->in[1]->shape;
    int64_t depth = index->rank ? index->dim[index->rank - 1] : 0;
    TRY(reduction_of(c->node, &reduction, err));
    if (depth < 1 || depth > x->rank)
        return FAIL(err, STATUS_FAILED, "indices of depth %lld for data of rank %d",
                    (long long)depth, x->rank);
    int64_t wanted = shape_span(index, 0, index->rank - 1) * shape_span(x, (int)depth, x->rank);
    if (shape_count(&c->in[2]->shape) != wanted) {
        char text[96];
        return FAIL(err, STATUS_FAILED, "updates %s; the indices name %lld elements",
                    shape_text(&c->in[2]->shape, text), (long long)wanted);
    }
    return infer_same(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    enum reduction reduction;
    const struct ref_tensor *x = call->in[0], *index = call->in[1];
    int depth = (int)index->shape.dim[index->shape.rank - 1];
    int64_t rows = shape_span(&index->shape, 0, index->shape.rank - 1);
    int64_t inner = shape_span(&x->shape, depth, x->shape.rank);
    TRY(reduction_of(call->node, &reduction, err));
    ref_copy_all(call->out[0], x);
    for (int64_t row = 0; row < rows; row++) {
        int64_t to = 0;
        for (int k = 0; k < depth; k++) {
            int64_t at, size = x->shape.dim[k];
            TRY(index_wrap(call->node, index->i[row * depth + k], size, &at, err));
            to = to * size + at;
        }
        for (int64_t e = 0; e < inner; e++)
            reduce_into(call->out[0], to * inner + e, call->in[2], row * inner + e, reduction);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return scatter_gradient(c, &op_scatter_nd, &op_gather_nd, err);
}

static const struct op_case cases[] = {
    {.name = "elements", .inputs = "f32[10,10] i64[4,2]=1,2,-1,3,0,0,9,-10 f32[4]"},
    {.name = "rows", .inputs = "f32[10,3,2] i64[2,1]=4,-3 f32[2,3,2]"},
    {.name = "add", .inputs = "f32[10,5] i64[3,4,1] f32[3,4,5]", .attrs = "reduction=\"add\""},
    {.name = "mul", .inputs = "i32[10] i64[8,1] i32[8]{1:3}", .attrs = "reduction=\"mul\""},
    {.name = "max", .inputs = "f32[10] i64[8,1] f32[8]", .attrs = "reduction=\"max\""},
    {.name = "min", .inputs = "f32[10,2] i64[8,1] f32[8,2]", .attrs = "reduction=\"min\""},
    {.name = "vector", .inputs = "i64[7] i32[3,1]=3,-7,6 i64[3]"},
    {.name = "bytes", .inputs = "u8[10,5] i64[3,1]=9,2,-10 u8[3,5]"},
    {.name = "truths", .inputs = "bool[4,10] i64[3,2]=0,9,-1,3,2,-10 bool[3]"},
    {.name = "sums", .inputs = "i32[5,10] i64[40,2]{-5:5} i32[40]", .attrs = "reduction=\"add\""},
    {.name = "large", .inputs = "f32[10,5,1021] i64[4,2]=9,-1,0,0,-10,1,4,2 f32[4,1021]"},
    {.name = "large_sums",
     .inputs = "f32[30,1031] i64[40,1]{-30:30} f32[40,1031]",
     .attrs = "reduction=\"add\""},
    {.name = "largest", .inputs = "i64[10,3] i32[9,2]{0:3} i64[9]", .attrs = "reduction=\"max\""},
    {.name = "product", .inputs = "f32[9] i64[9,1]{-9:9} f32[9]", .attrs = "reduction=\"mul\""},
    {.name = "none", .inputs = "f32[10,3] i64[0,1] f32[0,3]"},
    {.name = "empty", .inputs = "f32[10,0] i64[4,1] f32[4,0]"},
};

REGISTER(op, scatter_nd) = {
    .name = "ScatterND",
    .narrow = NARROW_MOVE,
    .inputs_min = 3,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_ROWS,
    .infer = infer,
    .cost = scatter_cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
