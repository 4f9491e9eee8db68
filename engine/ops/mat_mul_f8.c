/* SPDX-License-Identifier: Apache-2.0
 * MatMulF8: alpha A B of factors in f8, whose result has the type with ONNX's number `to`; with
 * transB b is a matrix [n, k]. ONNX multiplies f8 only after a Cast or DequantizeLinear: a pass
 * (engine/compile/passes/absorb_f8.c) makes it of these, files never have it. */
#include "engine/ops/compute/ref_matmul.h"
#include "engine/ops/lib/matmul_shape.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"alpha", "to", "transB", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y;
    enum dtype to = dtype_from_onnx(node_int(c->node, "to", 0));
    if (c->in[0]->dtype != DTYPE_F8E4M3 || c->in[1]->dtype != DTYPE_F8E4M3)
        return FAIL(err, STATUS_FAILED, "MatMulF8: %s times %s", dtype_name(c->in[0]->dtype),
                    dtype_name(c->in[1]->dtype));
    if (to != DTYPE_F32 && to != DTYPE_F16 && to != DTYPE_BF16)
        return FAIL(err, STATUS_FAILED, "MatMulF8 to %s", dtype_name(to));
    TRY(matmul_infer(c->node, &c->in[0]->shape, &c->in[1]->shape, &y, err));
    infer_set(c, 0, to, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    double alpha = node_float(call->node, "alpha", 1);
    struct ref_matrix left = {&a->shape, a->f}, right = {&b->shape, b->f};
    TRY(ref_matmul(call, &left, &right, y->f, err));
    for (int64_t i = 0; i < y->count; i++)
        y->f[i] *= alpha;
    return STATUS_OK;
}

/* to: 1 f32, 10 f16, 16 bf16. */
static const struct op_case cases[] = {
    {.name = "transB", .inputs = "f8e4m3[13,64] f8e4m3[48,64]", .attrs = "to=16 transB=1"},
    {.name = "transB_constant",
     .inputs = "f8e4m3[1,32]{-2:2} f8e4m3[16,32]{-2:2}!",
     .attrs = "to=1 transB=1"},
    {.name = "constant", .inputs = "f8e4m3[33,80] f8e4m3[80,32]!", .attrs = "to=16"},
    {.name = "f16", .inputs = "f8e4m3[20,16] f8e4m3[16,16]!", .attrs = "to=10 alpha=0.125"},
    {.name = "f32_alpha", .inputs = "f8e4m3[7,32] f8e4m3[32,48]!", .attrs = "to=1 alpha=0.02"},
    {.name = "large_numbers",
     .inputs = "f8e4m3[5,32]{-448:448} f8e4m3[32,16]{-448:448}!",
     .attrs = "to=1 alpha=0.001"},
    {.name = "long_sums", .inputs = "f8e4m3[25,2608] f8e4m3[64,2608]", .attrs = "to=16 transB=1"},
    {.name = "shared_matrix", .inputs = "f8e4m3[2,7,32] f8e4m3[32,48]!", .attrs = "to=16"},
    {.name = "batch", .inputs = "f8e4m3[3,2,16,48] f8e4m3[3,2,48,32]!", .attrs = "to=16"},
    {.name = "broadcast_batches", .inputs = "f8e4m3[4,1,5,16] f8e4m3[3,16,16]!", .attrs = "to=16"},
    {.name = "odd_sizes", .inputs = "f8e4m3[9,35] f8e4m3[35,21]", .attrs = "to=16"},
    {.name = "vectors", .inputs = "f8e4m3[19] f8e4m3[19]", .attrs = "to=1"},
};

REGISTER(op, mat_mul_f8) = {
    .name = "MatMulF8",
    .domain = "ridge",
    .inputs_min = 2,
    .attrs = attrs,
    .epilogue = true,
    .infer = infer,
    .cost = matmul_cost,
    .reference = reference,
    .no_gradient = "products of 8 bits are for inference",
    OP_CASES(cases),
};
