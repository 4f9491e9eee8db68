/* SPDX-License-Identifier: Apache-2.0
 * MatMulBytes: products of a - x_zero and a matrix of weights - w_zero, [k, n] or with transB
 * [n, k], both bytes, in i32; then as ConvBytes per column (engine/ops/family/rescale.h). A pass
 * (engine/compile/passes/absorb_bytes.c) makes it of DequantizeLinear, MatMul or Gemm, and
 * QuantizeLinear; files never have it. */
#include <stdlib.h>

#include "engine/ops/compute/ref_matmul.h"
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/matmul_shape.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"transB", "x_zero", "w_zero", "to",
                                    "low",    "high",   "zero",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y;
    TRY(matmul_infer(c->node, &c->in[0]->shape, &c->in[1]->shape, &y, err));
    if (c->in[1]->shape.rank != 2)
        return FAIL(err, STATUS_FAILED, "MatMulBytes: the weights are no matrix");
    TRY(rescale_check(c, y.dim[y.rank - 1], err));
    infer_set(c, 0, rescale_type(c->node), &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    matmul_cost(c, cost);
    cost->elementwise = 2 * (double)shape_count(&c->out[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    double *a = rescale_centred(call, 0), *b = rescale_centred(call, 1);
    double *sums = calloc((size_t)call->out[0]->count + 1, sizeof(*sums));
    struct ref_matrix left = {&call->in[0]->shape, a}, right = {&call->in[1]->shape, b};
    enum status status =
        a && b && sums ? ref_matmul(call, &left, &right, sums, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        rescale_sums(call, sums, 1);
    free(sums);
    free(b);
    free(a);
    return status;
}

/* to: 1 f32, 2 u8, 3 i8. */
static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[13,64]{0:256} i8[64,48]{-128:128}! f32[48]{0.0001:0.002}! f32[48]{-9:9}!",
     .attrs = "x_zero=120 to=2 zero=128"},
    {.name = "transB",
     .inputs = "u8[7,35]{0:256} i8[21,35]{-128:128}! f32[21]{0.0001:0.004}! f32[21]{-9:9}!",
     .attrs = "transB=1 x_zero=3 to=2 zero=128"},
    {.name = "i8",
     .inputs = "i8[2,9,32]{-128:128} i8[32,17]{-128:128}! f32[17]{0.0001:0.004}! f32[17]{-9:9}!",
     .attrs = "x_zero=-5 to=3 zero=4"},
    {.name = "i8_odd",
     .inputs = "i8[5,33]{-128:128} u8[33,19]{0:256}! f32[19]{0.0001:0.004}! f32[19]{-9:9}!",
     .attrs = "w_zero=128 to=3 zero=4 low=0.0"},
    {.name = "f32",
     .inputs = "i8[3,4,64]{-128:128} i8[64,40]{-128:128}! f32[40]{0.0001:0.004}! f32[40]{-9:9}!",
     .attrs = "x_zero=9 to=1"},
    {.name = "one_row",
     .inputs = "u8[1,2048]{0:256} i8[100,2048]{-128:128}! f32[100]{0.00001:0.0002}! f32[100]!",
     .attrs = "transB=1 to=1"},
    {.name = "deep",
     .inputs = "u8[30,2608]{0:256} i8[2608,64]{-128:128}! f32[64]{0.00001:0.0002}! f32[64]!",
     .attrs = "x_zero=128 to=2 zero=128"},
};

REGISTER(op, mat_mul_bytes) = {
    .name = "MatMulBytes",
    .domain = "ridge",
    .inputs_min = 4,
    .attrs = attrs,
    .epilogue = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
