/* SPDX-License-Identifier: Apache-2.0
 * Gemm: alpha A' B' + beta C; A' and B' transposed on demand, C broadcast to the result. */
#include "engine/graph/op_list.h"
#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/matmul_shape.h"

static const char *const attrs[] = {"alpha", "beta", "transA", "transB", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y, both;
    TRY(matmul_infer(c->node, &c->in[0]->shape, &c->in[1]->shape, &y, err));
    if (infer_has(c, 2)) {
        char text[96], text_y[96];
        if (!shape_broadcast(&y, &c->in[2]->shape, &both) || !shape_equal(&both, &y))
            return FAIL(err, STATUS_FAILED, "Gemm: C of shape %s does not broadcast to %s",
                        shape_text(&c->in[2]->shape, text), shape_text(&y, text_y));
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    bool trans_a = node_int(c->node, "transA", 0) != 0;
    double outputs = (double)shape_count(&c->out[0]->shape);
    cost->macs = outputs * (double)c->in[0]->shape.dim[!trans_a];
    cost->elementwise = infer_has(c, 2) ? outputs : 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *y = call->out[0];
    struct desc a = desc_dense(DTYPE_F64, &call->in[0]->shape, LAYOUT_PLAIN);
    struct desc b = desc_dense(DTYPE_F64, &call->in[1]->shape, LAYOUT_PLAIN);
    struct desc c = desc_dense(DTYPE_F64, &y->shape, LAYOUT_PLAIN);
    struct matmul_shape s = matmul_shape_from(call->node, &a, &b, &c);
    double alpha = node_float(call->node, "alpha", 1), beta = node_float(call->node, "beta", 1);
    const struct ref_tensor *bias = call->in_count > 2 && beta != 0 ? call->in[2] : NULL;
    bool floats = dtype_is_float(y->dtype);
    struct ref_gemm product = {.m = s.m,
                               .n = s.n,
                               .k = s.k,
                               .a = call->in[0]->f,
                               .a_row = s.a_row,
                               .a_col = s.a_col,
                               .b = call->in[1]->f,
                               .b_row = s.b_row,
                               .b_col = s.b_col,
                               .c = y->f,
                               .c_row = s.c_row};
    if (floats)
        ref_gemm_run(call->pool, &product, 1);
    for (int64_t i = 0; i < y->count; i++) {
        double sum = floats ? y->f[i] : 0;
        for (int64_t k = 0; !floats && k < s.k; k++)
            sum += (double)(call->in[0]->i[i / s.n * s.a_row + k * s.a_col] *
                            call->in[1]->i[k * s.b_row + i % s.n * s.b_col]);
        double offset = bias ? ref_get(bias, ref_broadcast_index(&y->shape, i, &bias->shape)) : 0;
        ref_set(y, i, alpha * sum + beta * offset);
    }
    return STATUS_OK;
}

static int product(struct graph *g, int a, int b, bool ta, bool tb, double alpha)
{
    return graph_node(
        g, op_gemm.name, NULL, INPUTS(a, b),
        ATTRS(attr_float("alpha", alpha), attr_int("transA", ta), attr_int("transB", tb)));
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    const struct node *node = gradient_node(c);
    int a = gradient_in(c, 0), b = gradient_in(c, 1), bias = gradient_in(c, 2), dy = c->dy[0];
    bool ta = node_int(node, "transA", 0) != 0, tb = node_int(node, "transB", 0) != 0;
    double alpha = node_float(node, "alpha", 1), beta = node_float(node, "beta", 1);
    if (c->wanted[0])
        c->dx[0] = ta ? product(g, b, dy, tb, true, alpha) : product(g, dy, b, false, !tb, alpha);
    if (c->wanted[1])
        c->dx[1] = tb ? product(g, dy, a, true, ta, alpha) : product(g, a, dy, !ta, false, alpha);
    if (bias != NONE && c->wanted[2])
        c->dx[2] = make_scaled(g, make_sum_to(g, dy, bias), beta);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "plain", .inputs = "f32[9,33] f32[33,40]!"},
    {.name = "bias_row", .inputs = "f32[17,64] f32[64,30]! f32[30]!"},
    {.name = "transB_bias_row",
     .inputs = "f32[5,2048] f32[136,2048]! f32[136]!",
     .attrs = "transB=1"},
    {.name = "transB_blocks", .inputs = "f32[130,72] f32[100,72]! f32[100]!", .attrs = "transB=1"},
    {.name = "transB_one_row", .inputs = "f32[1,512] f32[77,512]! f32[77]!", .attrs = "transB=1"},
    {.name = "transB_few_rows", .inputs = "f32[3,5] f32[5000,5]! f32[5000]!", .attrs = "transB=1"},
    {.name = "transA", .inputs = "f32[20,11] f32[20,13]! f32[13]!", .attrs = "transA=1"},
    {.name = "transA_transB", .inputs = "f32[20,11] f32[13,20]", .attrs = "transA=1 transB=1"},
    {.name = "alpha_beta_full_C",
     .inputs = "f32[7,8] f32[8,9]! f32[7,9]",
     .attrs = "alpha=0.5 beta=2.0"},
    {.name = "C_is_a_column", .inputs = "f32[7,8] f32[8,9]! f32[7,1]!"},
    {.name = "C_is_a_scalar", .inputs = "f32[7,8] f32[8,9] f32[]!", .attrs = "beta=0.25"},
    {.name = "C_of_rank_2_one_row", .inputs = "f32[7,8] f32[8,9]! f32[1,9]!"},
    {.name = "beta_0", .inputs = "f32[7,8] f32[8,9] f32[9]", .attrs = "beta=0.0"},
    {.name = "bf16", .inputs = "bf16[13,34] bf16[34,40]!", .tolerance = 8e-3},
    {.name = "bf16_transB_odd_k",
     .inputs = "bf16[29,67] bf16[70,67]",
     .attrs = "transB=1",
     .tolerance = 8e-3},
    {.name = "bf16_transB_bias_row",
     .inputs = "bf16[5,64] bf16[33,64]! bf16[33]!",
     .attrs = "transB=1",
     .tolerance = 8e-3},
    {.name = "bf16_transA",
     .inputs = "bf16[31,21] bf16[31,18] bf16[18]",
     .attrs = "transA=1",
     .tolerance = 8e-3},
    {.name = "bf16_transA_transB",
     .inputs = "bf16[20,11] bf16[13,20]",
     .attrs = "transA=1 transB=1",
     .tolerance = 8e-3},
    {.name = "bf16_long_sums",
     .inputs = "bf16[25,2600] bf16[70,2600]",
     .attrs = "transB=1",
     .tolerance = 8e-3},
    {.name = "bf16_alpha",
     .inputs = "bf16[7,8] bf16[8,9] bf16[7,9]",
     .attrs = "alpha=0.5 beta=2.0",
     .tolerance = 8e-3},
    {.name = "all_at_run_time", .inputs = "f32[64,65] f32[65,66] f32[66]"},
};

REGISTER(op, gemm) = {
    .name = "Gemm",
    .narrow = NARROW_WORK,
    .inputs_min = 2,
    .inputs_max = 3,
    .attrs = attrs,
    .epilogue = true,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
