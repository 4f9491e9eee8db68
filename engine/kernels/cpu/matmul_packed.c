/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with constant weights, which are packed into panels once. Rows of the left
 * operand are read where they are, or copied block by block (engine/kernels/lib/gemm.h). Gemm's
 * alpha and beta go into the weights and the bias. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/matmul_product.h"

struct kernel_state {
    struct gemm_plan plan;
    struct gemm_post post;
    struct matmul_shape shape;
    float *packed, *bias; /* bias NULL: none known at preparation */
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct matmul_product p;
    if (!q->fixed[1])
        return UNSUPPORTED(why, "the right operand is not constant");
    TRY(matmul_product_from(q, &p, why));
    const struct matmul_shape *s = &p.shape;
    if (s->a_col != 1 && s->k > 1)
        return UNSUPPORTED(why, "rows of the left operand are not dense");
    for (int d = 0; d < s->batch_rank; d++)
        if (s->b_batch[d])
            return UNSUPPORTED(why, "every batch has weights of its own");
    return STATUS_OK;
}

static struct gemm_size size_of(const struct kernel_query *q, const struct matmul_shape *s)
{
    return (struct gemm_size){
        .batch = s->batch, .m = s->m, .n = s->n, .taps = 1, .k = s->k, .threads = q->threads};
}

static bool is_large(const struct kernel_query *q)
{
    return desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
}

static struct gemm_plan plan_of(const struct kernel_query *q, const struct matmul_shape *s,
                                int variant)
{
    struct gemm_size size = size_of(q, s);
    return gemm_variant(&size, s->a_row, is_large(q), variant);
}

static int variants(const struct kernel_query *q)
{
    struct matmul_product p;
    matmul_product_from(q, &p, NULL);
    struct gemm_size size = size_of(q, &p.shape);
    return gemm_variant_count(&size, p.shape.a_row, is_large(q));
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    struct matmul_product p;
    matmul_product_from(q, &p, NULL);
    struct gemm_plan plan = plan_of(q, &p.shape, variant);
    gemm_describe(&plan, text, size);
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    struct matmul_product p;
    matmul_product_from(q, &p, NULL);
    struct gemm_plan plan = plan_of(q, &p.shape, variant);
    return gemm_workspace(&plan);
}

static void release(struct kernel_state *state)
{
    if (!state)
        return;
    free(state->packed);
    free(state->bias);
    free(state);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **out,
                           size_t *state_bytes, struct error *err)
{
    struct matmul_product p;
    TRY(matmul_product_from(q, &p, err));
    struct kernel_state *state = calloc(1, sizeof(*state));
    if (!state)
        return FAIL_NO_MEMORY(err);
    state->plan = plan_of(q, &p.shape, variant);
    state->post = p.post;
    state->shape = p.shape;
    size_t packed_bytes = (size_t)gemm_packed_floats(&state->plan) * sizeof(float);
    size_t bias_bytes = (size_t)gemm_bias_floats(&state->plan) * sizeof(float);
    state->packed = gemm_alloc(packed_bytes);
    state->bias = gemm_alloc(bias_bytes);
    if (!state->packed || !state->bias) {
        release(state);
        return FAIL_NO_MEMORY(err);
    }
    struct gemm_source_b from = {
        .b = q->fixed[1], .row = p.shape.b_row, .column = p.shape.b_col, .scale = p.alpha};
    gemm_pack_b(&state->plan, &from, 0, state->plan.panels, state->packed);
    memset(state->bias, 0, bias_bytes);
    if (!gemm_post_take_bias(q, &state->post, state->bias, p.shape.n)) {
        free(state->bias);
        state->bias = NULL;
        bias_bytes = 0;
    }
    *state_bytes = packed_bytes + bias_bytes;
    *out = state;
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)q;
    struct matmul_rows_source source = {args->in[0], &state->shape};
    struct gemm_call call = {.rows = matmul_rows,
                             .source = &source,
                             .b = state->packed,
                             .bias = state->bias,
                             .c = args->out[0],
                             .c_row = state->shape.c_row,
                             .post = &state->post,
                             .in = args->in,
                             .batch_rank = state->shape.batch_rank,
                             .batch_dim = state->shape.batch_dim,
                             .c_batch = state->shape.c_batch,
                             .workspace = args->workspace};
    gemm_run(&state->plan, &call, args->pool);
}

REGISTER_KERNEL(matmul_packed) = {
    NATIVE(matmul_packed),      .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1,
    .supports = supports,       .old_variants = variants,     .old_describe = describe,
    .old_workspace = workspace, .old_prepare = prepare,       .old_launch = launch,
    .release = release,
};
