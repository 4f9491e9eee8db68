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
    struct matmul_product product;
    bool large;           /* the result may be written past the caches */
    float *packed, *bias; /* bias NULL: none known at preparation */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    if (!q->fixed[1])
        return UNSUPPORTED(why, "the right operand is not constant");
    TRY(matmul_product_from(q, &state->product, why));
    const struct matmul_shape *s = &state->product.shape;
    if (s->a_col != 1 && s->k > 1)
        return UNSUPPORTED(why, "rows of the left operand are not dense");
    for (int d = 0; d < s->batch_rank; d++)
        if (s->b_batch[d])
            return UNSUPPORTED(why, "every batch has weights of its own");
    struct gemm_size size = {
        .batch = s->batch, .m = s->m, .n = s->n, .taps = 1, .k = s->k, .threads = q->threads};
    state->large = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
    state->plan = gemm_variant(&size, s->a_row, state->large, variant);
    state->post = state->product.post;
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return gemm_variant_count(&s->plan.size, s->product.shape.a_row, s->large);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
}

static size_t workspace(const struct kernel_state *s)
{
    return gemm_workspace(&s->plan);
}

static void release(struct kernel_state *state)
{
    free(state->packed);
    free(state->bias);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    const struct matmul_product *p = &state->product;
    size_t weight_bytes = (size_t)gemm_packed_floats(&state->plan) * sizeof(float);
    size_t bias_bytes = (size_t)gemm_bias_floats(&state->plan) * sizeof(float);
    state->packed = gemm_alloc(weight_bytes);
    state->bias = gemm_alloc(bias_bytes);
    if (!state->packed || !state->bias)
        return FAIL_NO_MEMORY(err);
    struct gemm_source_b from = {
        .b = q->fixed[1], .row = p->shape.b_row, .column = p->shape.b_col, .scale = p->alpha};
    gemm_pack_b(&state->plan, &from, 0, state->plan.panels, state->packed);
    memset(state->bias, 0, bias_bytes);
    if (!gemm_post_take_bias(q, &state->post, state->bias, p->shape.n)) {
        free(state->bias);
        state->bias = NULL;
        bias_bytes = 0;
    }
    *packed_bytes = weight_bytes + bias_bytes;
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct matmul_shape *shape = &state->product.shape;
    struct matmul_rows_source source = {args->in[0], shape};
    struct gemm_call call = {.rows = matmul_rows,
                             .source = &source,
                             .b = state->packed,
                             .bias = state->bias,
                             .c = args->out[0],
                             .c_row = shape->c_row,
                             .post = &state->post,
                             .in = args->in,
                             .batch_rank = shape->batch_rank,
                             .batch_dim = shape->batch_dim,
                             .c_batch = shape->c_batch,
                             .workspace = args->workspace};
    gemm_run(&state->plan, &call, args->pool);
}

REGISTER_KERNEL(matmul_packed) = {
    NATIVE(matmul_packed), .ops = OPS("MatMul", "Gemm"),
    .packs = 1u << 1,      .state_size = sizeof(struct kernel_state),
    .plan = plan,          .variants = variants,
    .describe = describe,  .workspace = workspace,
    .prepare = prepare,    .launch = launch,
    .release = release,
};
