/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm whose right operand is the same for all batches. It is packed into panels: once
 * where it is constant, else before each launch, in scratch memory that is still in the caches when
 * the panels are read. Rows of the left operand are read where they are, or copied block by block
 * and turned on the way where it is transposed (engine/kernels/lib/gemm.h). Gemm's alpha and beta
 * go into the panels and the bias. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/matmul_product.h"

struct kernel_state {
    struct gemm_plan plan;
    struct gemm_post post;
    struct matmul_product product;
    bool large;           /* the result may be written past the caches */
    bool changing;        /* the right operand comes with each launch */
    float *packed, *bias; /* packed NULL: in the workspace; bias NULL: none known at preparation */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    TRY(matmul_product_from(q, &state->product, why));
    const struct matmul_shape *s = &state->product.shape;
    for (int d = 0; d < s->batch_rank; d++)
        if (s->b_batch[d])
            return UNSUPPORTED(why, "every batch has a right operand of its own: matmul_dynamic");
    struct gemm_size size = {
        .batch = s->batch, .m = s->m, .n = s->n, .taps = 1, .k = s->k, .threads = q->threads};
    TRY(matmul_turns(s, &size.turn, why));
    state->changing = !q->fixed[1];
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

static size_t weight_bytes(const struct kernel_state *s)
{
    return (size_t)gemm_packed_floats(&s->plan) * sizeof(float);
}

static size_t workspace(const struct kernel_state *s)
{
    return gemm_workspace(&s->plan) + (s->changing ? weight_bytes(s) : 0);
}

static float *panels(const struct kernel_state *s, const struct kernel_args *args)
{
    size_t before = gemm_workspace(&s->plan);
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + before);
}

static void release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->bias);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    size_t weights = state->changing ? 0 : weight_bytes(state);
    size_t bias = (size_t)gemm_bias_floats(&state->plan) * sizeof(float);
    state->packed = weights ? memory_alloc(weights) : NULL;
    state->bias = memory_alloc(bias);
    if ((weights && !state->packed) || !state->bias)
        return FAIL_NO_MEMORY(err);
    memset(state->bias, 0, bias);
    if (!gemm_post_take_bias(q, &state->post, state->bias, state->product.shape.n)) {
        memory_free(state->bias);
        state->bias = NULL;
        bias = 0;
    }
    *packed_bytes = weights + bias;
    return STATUS_OK;
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct matmul_product *p = &state->product;
    struct gemm_source_b from = {
        .b = args->in[1], .row = p->shape.b_row, .column = p->shape.b_col, .scale = p->alpha};
    gemm_pack(&state->plan, &from, args->pool, panels(state, args));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct matmul_shape *shape = &state->product.shape;
    struct matmul_rows_source source = {args->in[0], shape};
    struct gemm_call call = {.rows = matmul_rows,
                             .source = &source,
                             .a_step = shape->a_col,
                             .b = panels(state, args),
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
    .prepare = prepare,    .pack = pack,
    .launch = launch,      .release = release,
};
