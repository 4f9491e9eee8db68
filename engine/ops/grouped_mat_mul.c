/* SPDX-License-Identifier: Apache-2.0
 * GroupedMatMul (ridge): rows sorted by expert, each times the weights [E, K, N] of its own: rows
 * offsets[e] to offsets[e + 1] of the result are of expert e. x is these rows; or with `order`, it
 * is tokens, and row i that of place order[i], of which a token has `chosen`. Weights of experts
 * that nobody chose are not read. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/experts.h"

enum { X, WEIGHTS, OFFSETS, ORDER };

static const char *const attrs[] = {"chosen", NULL};

static enum status check_factors(const struct infer *c, struct error *err)
{
    char text[96], text_w[96];
    const struct value *x = c->in[X], *w = c->in[WEIGHTS];
    if (!dtype_is_float(x->dtype) || w->dtype != x->dtype)
        return FAIL(err, STATUS_FAILED, "GroupedMatMul: %s times %s", dtype_name(x->dtype),
                    dtype_name(w->dtype));
    if (x->shape.rank != 2 || w->shape.rank != 3 || w->shape.dim[1] != x->shape.dim[1])
        return FAIL(err, STATUS_FAILED, "GroupedMatMul: %s times %s", shape_text(&x->shape, text),
                    shape_text(&w->shape, text_w));
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t chosen = node_int(c->node, "chosen", 1);
    TRY(check_factors(c, err));
    int64_t rows = c->in[X]->shape.dim[0];
    if (chosen < 1 || (!infer_has(c, ORDER) && rows % chosen))
        return FAIL(err, STATUS_FAILED, "GroupedMatMul: %lld rows, %lld of each token",
                    (long long)rows, (long long)chosen);
    if (infer_has(c, ORDER)) {
        rows *= chosen;
        TRY(experts_check_list(c, ORDER, rows, err));
    }
    TRY(experts_check_list(c, OFFSETS, c->in[WEIGHTS]->shape.dim[0] + 1, err));
    struct shape y = shape_of(rows, c->in[WEIGHTS]->shape.dim[2]);
    infer_set(c, 0, c->in[X]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->macs = (double)shape_count(&c->out[0]->shape) * (double)c->in[WEIGHTS]->shape.dim[1];
}

static void multiply(const struct ref_call *call, const double *x, int64_t expert)
{
    const struct ref_tensor *w = call->in[WEIGHTS];
    int64_t k = w->shape.dim[1], n = w->shape.dim[2];
    int64_t first = call->in[OFFSETS]->i[expert], end = call->in[OFFSETS]->i[expert + 1];
    struct ref_gemm product = {.m = end - first,
                               .n = n,
                               .k = k,
                               .a = x + first * k,
                               .a_row = k,
                               .a_col = 1,
                               .b = w->f + expert * k * n,
                               .b_row = n,
                               .b_col = 1,
                               .c = call->out[0]->f + first * n,
                               .c_row = n};
    if (end > first)
        ref_gemm_run(call->pool, &product, 1);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[X],
                            *order = call->in_count > ORDER ? call->in[ORDER] : NULL;
    int64_t rows = call->out[0]->shape.dim[0], k = x->shape.dim[1];
    int64_t chosen = node_int(call->node, "chosen", 1);
    TRY(experts_check_offsets(call->node, call->in[OFFSETS], rows, err));
    if (order)
        TRY(experts_check_order(call->node, order, err));
    double *sorted = order ? malloc((size_t)(rows * k + 1) * sizeof(*sorted)) : NULL;
    if (order && !sorted)
        return FAIL_NO_MEMORY(err);
    for (int64_t i = 0; order && i < rows; i++)
        memcpy(sorted + i * k, x->f + order->i[i] / chosen * k, (size_t)k * sizeof(*sorted));
    for (int64_t e = 0; e < call->in[WEIGHTS]->shape.dim[0]; e++)
        multiply(call, order ? sorted : x->f, e);
    free(sorted);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "sorted", .inputs = "f32[7,24] f32[4,24,33]! i64[5]=0,3,3,4,7"},
    {.name = "of_tokens",
     .inputs = "f32[3,32] f32[4,32,48]! i64[5]=0,2,2,5,6 i64[6]=1,4,0,3,5,2",
     .attrs = "chosen=2"},
    {.name = "one_token",
     .inputs = "f32[1,128] f32[9,128,70]! i64[10]=0,0,1,1,1,2,2,3,4,4 i64[4]=2,0,3,1",
     .attrs = "chosen=4"},
    {.name = "one_row_each", .inputs = "f32[3,640] f32[3,640,200]! i64[4]=0,1,2,3"},
    {.name = "all_of_one",
     .inputs = "f32[30,40] f32[3,40,70]! i64[4]=0,0,30,30 i64[30]=0,1,2,3,4,5,6,7,8,9,10,11,12,13,"
               "14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29"},
    {.name = "many_rows", .inputs = "f32[400,96] f32[3,96,50]! i64[4]=0,11,211,400"},
    {.name = "deep", .inputs = "f32[12,1200] f32[2,1200,40]! i64[3]=0,9,12", .attrs = "chosen=2"},
    {.name = "deep_many_rows", .inputs = "f32[150,1300] f32[2,1300,24]! i64[3]=0,149,150"},
    {.name = "odd_depth", .inputs = "f32[9,37] f32[2,37,65]! i64[3]=0,4,9"},
    {.name = "one_column", .inputs = "f32[5,64] f32[2,64,1]! i64[3]=0,2,5"},
    {.name = "one_element", .inputs = "f32[4,1] f32[3,1,5]! i64[4]=0,1,3,4"},
    {.name = "wide", .inputs = "f32[8,16] f32[2,16,1500]! i64[3]=0,1,8"},
    {.name = "weights_given_late",
     .inputs = "f32[2,48] f32[5,48,36] i64[6]=0,1,1,2,4,4 i64[4]=3,0,1,2",
     .attrs = "chosen=2"},
    {.name = "one_expert", .inputs = "f32[6,32] f32[1,32,32]! i64[2]=0,6"},
    {.name = "no_rows", .inputs = "f32[0,8] f32[2,8,8]! i64[3]=0,0,0"},
};

REGISTER(op, grouped_mat_mul) = {
    .name = "GroupedMatMul",
    .domain = "ridge",
    .inputs_min = 3,
    .inputs_max = 4,
    .int_inputs = 1u << OFFSETS | 1u << ORDER,
    .attrs = attrs,
    .narrow = NARROW_WORK,
    .reads = READS_EXPERTS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "networks of experts are not trained",
    OP_CASES(cases),
};
