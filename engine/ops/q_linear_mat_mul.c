/* SPDX-License-Identifier: Apache-2.0
 * QLinearMatMul: the product of dequantised a and b, quantised again. Inputs a, scale, zero point;
 * b, scale, zero point; y's scale and zero point. Scales: one, per row of a, per column of b. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/compute/ref_matmul.h"
#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/matmul_shape.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

/* The axis of a, or of the result, that has a scale and a zero point of its own per index. */
static int row_axis(const struct shape *a)
{
    return a->rank > 1 ? -2 : -1;
}

static int result_axis(const struct shape *a, const struct shape *b)
{
    return b->rank > 1 ? row_axis(a) : -1;
}

static enum status check(const struct infer *c, const struct shape *y, struct error *err)
{
    const struct shape *a = &c->in[A]->shape, *b = &c->in[B]->shape, one = {.rank = 0};
    TRY(quantize_check(c, a, A_ZERO, row_axis(a), err));
    TRY(quantize_check(c, b, B_ZERO, -1, err));
    TRY(quantize_check(c, y, A_SCALE, result_axis(a, b), err));
    TRY(quantize_check(c, y, B_SCALE, -1, err));
    TRY(quantize_check(c, &one, Y_SCALE, 0, err));
    return quantize_check(c, &one, Y_ZERO, 0, err);
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y;
    TRY(matmul_infer(c->node, &c->in[A]->shape, &c->in[B]->shape, &y, err));
    TRY(check(c, &y, err));
    infer_set(c, 0, c->in[Y_ZERO]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *a = &c->in[A]->shape;
    double outputs = (double)shape_count(&c->out[0]->shape);
    cost->macs = outputs * (double)a->dim[a->rank - 1];
    cost->elementwise = 2 * outputs;
}

static void requantise(const struct ref_call *call, const double *sums)
{
    const struct ref_tensor *const *in = call->in, *y = call->out[0];
    int rows = result_axis(&in[A]->shape, &in[B]->shape);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t row = quantize_index(&y->shape, i, &in[A_SCALE]->shape, rows);
        int64_t column = quantize_index(&y->shape, i, &in[B_SCALE]->shape, -1);
        double scaled = sums[i] * in[A_SCALE]->f[row] * in[B_SCALE]->f[column] / in[Y_SCALE]->f[0];
        y->i[i] = quantize_saturate(y->dtype, rint(scaled) + ref_get(in[Y_ZERO], 0));
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[A], *b = call->in[B];
    double *as = quantize_centred(a, call->in[A_ZERO], row_axis(&a->shape));
    double *bs = quantize_centred(b, call->in[B_ZERO], -1);
    double *sums = calloc((size_t)call->out[0]->count + 1, sizeof(*sums));
    struct ref_matrix left = {&a->shape, as}, right = {&b->shape, bs};
    enum status status =
        as && bs && sums ? ref_matmul(call, &left, &right, sums, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        requantise(call, sums);
    free(sums);
    free(bs);
    free(as);
    return status;
}

static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[5,33]{0:256} f32[]=0.01 u8[]=113 u8[33,9]{0:256}! f32[]=0.02 u8[]=114 "
               "f32[]=0.05 u8[]=118"},
    {.name = "i8",
     .inputs = "i8[2,4,8]{-128:128} f32[]=0.01 i8[]=3 i8[8,6]{-128:128}! f32[]=0.02 i8[]=0 "
               "f32[]=0.03 i8[]=-4"},
    {.name = "per_row_and_column",
     .inputs = "u8[3,8]{0:256} f32[3]=0.01,0.02,0.03 u8[3]=1,100,200 i8[8,2]{-128:128}! "
               "f32[2]=0.01,0.02 i8[2]=0,5 f32[]=0.04 u8[]=128"},
    {.name = "per_row_times_a_vector",
     .inputs = "u8[3,8]{0:256} f32[3]=0.01,0.02,0.03 u8[3]=1,100,200 i8[8]{-128:128}! "
               "f32[]=0.01 i8[]=5 f32[]=0.04 u8[]=128"},
};

REGISTER(op, q_linear_mat_mul) = {
    .name = "QLinearMatMul",
    .inputs_min = 8,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
