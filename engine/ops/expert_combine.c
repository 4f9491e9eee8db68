/* SPDX-License-Identifier: Apache-2.0
 * ExpertCombine (ridge): the rows of a token's places, which lie sorted by expert, times their
 * weights [T, k], summed up in the order of the places: the same sum in whatever order experts are.
 * Row i is that of place order[i], as ExpertSort says it. */
#include "engine/ops/lib/experts.h"

enum { ROWS, ORDER, WEIGHTS };

static enum status infer(const struct infer *c, struct error *err)
{
    char text[96], text_w[96];
    const struct value *rows = c->in[ROWS], *weights = c->in[WEIGHTS];
    if (!dtype_is_float(rows->dtype) || !dtype_is_float(weights->dtype))
        return FAIL(err, STATUS_FAILED, "ExpertCombine: %s times %s", dtype_name(rows->dtype),
                    dtype_name(weights->dtype));
    if (rows->shape.rank != 2 || weights->shape.rank != 2 ||
        shape_count(&weights->shape) != rows->shape.dim[0])
        return FAIL(err, STATUS_FAILED, "ExpertCombine: rows %s, weights %s",
                    shape_text(&rows->shape, text), shape_text(&weights->shape, text_w));
    TRY(experts_check_list(c, ORDER, rows->shape.dim[0], err));
    struct shape y = shape_of(weights->shape.dim[0], rows->shape.dim[1]);
    infer_set(c, 0, rows->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    double results = (double)shape_count(&c->out[0]->shape);
    cost->elementwise = results * (double)(2 * c->in[WEIGHTS]->shape.dim[1] - 1);
}

/* row_of[place]: which row is that place's. */
static enum status find_rows(const struct ref_call *call, int64_t *row_of, struct error *err)
{
    const struct ref_tensor *order = call->in[ORDER];
    TRY(experts_check_order(call->node, order, err));
    for (int64_t i = 0; i < order->count; i++)
        row_of[i] = NONE;
    for (int64_t i = 0; i < order->count; i++) {
        if (row_of[order->i[i]] != NONE)
            return FAIL(err, STATUS_FAILED, "ExpertCombine: place %lld has two rows",
                        (long long)order->i[i]);
        row_of[order->i[i]] = i;
    }
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *rows = call->in[ROWS], *weights = call->in[WEIGHTS];
    int64_t width = rows->shape.dim[1], chosen = weights->shape.dim[1];
    struct ref_tensor row_of;
    TRY(ref_alloc(&row_of, DTYPE_I64, &call->in[ORDER]->shape, err));
    enum status status = find_rows(call, row_of.i, err);
    for (int64_t place = 0; status == STATUS_OK && place < weights->count; place++) {
        const double *from = rows->f + row_of.i[place] * width;
        double *y = call->out[0]->f + place / chosen * width;
        for (int64_t k = 0; k < width; k++)
            y[k] += weights->f[place] * from[k];
    }
    ref_release(&row_of);
    return status;
}

static const struct op_case cases[] = {
    {.name = "two_each", .inputs = "f32[6,40] i64[6]=1,4,0,3,5,2 f32[3,2]"},
    {.name = "one_token", .inputs = "f32[8,100] i64[8]=7,2,4,0,1,6,3,5 f32[1,8]{0:1}"},
    {.name = "one_each", .inputs = "f32[5,16] i64[5]=4,3,2,1,0 f32[5,1]"},
    {.name = "one_column", .inputs = "f32[4,1] i64[4]=2,0,3,1 f32[2,2]"},
    {.name = "odd_width", .inputs = "f32[9,37] i64[9]=0,3,6,1,4,7,2,5,8 f32[3,3]"},
    {.name = "wide", .inputs = "f32[4,9000] i64[4]=3,1,0,2 f32[2,2]"},
    {.name = "no_token", .inputs = "f32[0,8] i64[0] f32[0,2]"},
};

REGISTER(op, expert_combine) = {
    .name = "ExpertCombine",
    .domain = "ridge",
    .inputs_min = 3,
    .int_inputs = 1u << ORDER,
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << ROWS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "networks of experts are not trained",
    OP_CASES(cases),
};
