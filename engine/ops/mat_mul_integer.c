/* SPDX-License-Identifier: Apache-2.0
 * MatMulInteger: (a - its zero point) (b - its zero point) in i32. Zero points are scalars, one per
 * row of a, one per column of b, or broadcast. transB (b is a matrix [n, k]) is ours: passes set
 * it, files never have it. */
#include <stdlib.h>

#include "engine/ops/compute/ref_matmul.h"
#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/matmul_shape.h"

static const char *const attrs[] = {"transB", NULL};

/* The axis of a factor that has a zero point of its own per index. */
static int row_axis(const struct shape *a)
{
    return a->rank > 1 ? -2 : -1;
}

static int column_axis(const struct node *node)
{
    return node_int(node, "transB", 0) ? -2 : -1;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y;
    TRY(matmul_infer(c->node, &c->in[0]->shape, &c->in[1]->shape, &y, err));
    TRY(quantize_check(c, &c->in[0]->shape, 2, row_axis(&c->in[0]->shape), err));
    TRY(quantize_check(c, &c->in[1]->shape, 3, column_axis(c->node), err));
    infer_set(c, 0, DTYPE_I32, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    int rows = row_axis(&a->shape), columns = column_axis(call->node);
    double *as = quantize_centred(a, call->in_count > 2 ? call->in[2] : NULL, rows);
    double *bs = quantize_centred(b, call->in_count > 3 ? call->in[3] : NULL, columns);
    double *sums = calloc((size_t)y->count + 1, sizeof(*sums));
    struct ref_matrix left = {&a->shape, as}, right = {&b->shape, bs};
    enum status status =
        as && bs && sums ? ref_matmul(call, &left, &right, sums, err) : FAIL_NO_MEMORY(err);
    for (int64_t i = 0; status == STATUS_OK && i < y->count; i++)
        y->i[i] = (int64_t)sums[i];
    free(sums);
    free(bs);
    free(as);
    return status;
}

static const struct op_case cases[] = {
    {.name = "no_zero_points", .inputs = "u8[9,33]{0:256} i8[33,20]{-128:128}!"},
    {.name = "scalars", .inputs = "u8[5,40]{0:256} u8[40,7]{0:256} u8[]=128 u8[]=100"},
    {.name = "per_row_and_column",
     .inputs = "u8[3,8]{0:256} i8[8,4]{-128:128} u8[3]=1,2,200 i8[4]=-7,0,5,1"},
    {.name = "i8_i8", .inputs = "i8[30,64]{-128:128} i8[64,70]{-128:128}"},
    {.name = "i8_i8_extremes", .inputs = "i8[3,300]=-128 i8[300,40]=-128"},
    {.name = "u8_i8_extremes", .inputs = "u8[3,300]=255 i8[300,40]=127"},
    {.name = "i8_i8_zero_points",
     .inputs = "i8[7,37]{-128:128} i8[37,19]{-128:128}! i8[]=-128 i8[]=127"},
    {.name = "i8_u8_per_column",
     .inputs = "i8[7,37]{-128:128} u8[37,3]{0:256} i8[]=5 u8[3]=0,255,128"},
    {.name = "u8_u8", .inputs = "u8[13,50]{0:256} u8[50,33]{0:256}!"},
    {.name = "long_sums", .inputs = "i8[25,5003]{-128:128} i8[5003,40]{-128:128} i8[]=1 i8[]=2"},
    {.name = "one_row", .inputs = "u8[1,131]{0:256} i8[131,67]{-128:128}! u8[]=128"},
    {.name = "vectors", .inputs = "i8[19]{-128:128} i8[19]{-128:128}"},
    {.name = "shared_matrix", .inputs = "i8[2,7,24]{-128:128} i8[24,36]{-128:128}! i8[]=9"},
    {.name = "broadcast_batches", .inputs = "u8[4,1,5,6]{0:256} u8[3,6,7]{0:256} u8[]=3 u8[]=200"},
    {.name = "transB", .inputs = "i8[26,64]{-128:128} i8[70,64]{-128:128}", .attrs = "transB=1"},
    {.name = "transB_per_column",
     .inputs = "u8[9,39]{0:256} i8[3,39]{-128:128}! u8[]=7 i8[3]=-128,0,127",
     .attrs = "transB=1"},
    {.name = "constant_on_fours", .inputs = "i8[5,36]{-128:128} i8[36,20]{-128:128}!"},
    {.name = "zero_points_of_0",
     .inputs = "i8[5,36]{-128:128} i8[36,20]{-128:128}! i8[]=0 i8[20]=0"},
    {.name = "batch_on_fours", .inputs = "i8[2,3,4,8]{-128:128} i8[3,8,12]{-128:128}!"},
    {.name = "batch", .inputs = "i8[2,3,8]{-128:128} i8[2,8,5]{-128:128} i8[]=3"},
};

REGISTER(op, mat_mul_integer) = {
    .name = "MatMulInteger",
    .inputs_min = 2,
    .inputs_max = 4,
    .attrs = attrs,
    .infer = infer,
    .cost = matmul_cost,
    .reference = reference,
    .no_gradient = "integers have no gradient",
    OP_CASES(cases),
};
