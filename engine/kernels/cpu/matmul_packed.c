/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with constant weights, which are packed into panels once. Rows of the left
 * operand are read where they are, or copied block by block (engine/kernels/lib/gemm.h). Gemm's
 * alpha and beta go into the weights and the bias. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/lib/gemm.h"
#include "engine/matmul_shape.h"

struct kernel_state {
    struct gemm_plan plan;
    struct gemm_post post;
    struct matmul_shape shape;
    float *packed, *bias; /* bias NULL: none known at preparation */
};

struct tuning {
    int vectors, rows;
    int64_t block_k;
    bool other_copy; /* the opposite of what looks right */
};

/* Best guesses first. */
#if defined(__AVX512F__)
static const struct tuning tunings[] = {
    {4, 6, 512, false},  {3, 8, 512, false}, {3, 9, 512, false}, {2, 12, 512, false},
    {4, 6, 256, false},  {3, 8, 256, false}, {4, 6, 512, true},  {3, 8, 512, true},
    {2, 12, 256, false}, {2, 14, 512, true},
};
#elif defined(__AVX2__)
static const struct tuning tunings[] = {
    {2, 6, 512, false}, {3, 4, 512, false}, {2, 6, 256, false},
    {3, 4, 256, false}, {2, 6, 512, true},  {3, 4, 512, true},
};
#else
static const struct tuning tunings[] = {{4, 4, 256, false}, {4, 3, 256, false}};
#endif

/* ---- the query as a product ---- */

struct product {
    struct matmul_shape shape;
    struct gemm_axes axes;
    struct gemm_post post;
};

/* Dimensions of the output: `batches` leading ones count products, the rest are rows, then the
 * column if the right operand is a matrix. */
static struct gemm_axes axes_of(const struct kernel_query *q, int batches)
{
    int rank = q->out[0].shape.rank, columns = q->in[1].shape.rank > 1;
    struct gemm_axes axes = {.column = columns ? rank - 1 : NONE};
    for (int d = 0; d < rank - columns; d++) {
        if (d < batches)
            axes.batch[axes.batch_count++] = d;
        else
            axes.row[axes.row_count++] = d;
    }
    return axes;
}

/* matmul_shape_from took batches into the rows of one product; this takes them out again. */
static void unfold(const struct kernel_query *q, struct matmul_shape *s)
{
    int rank = q->out[0].shape.rank;
    int64_t rows = q->in[0].shape.rank > 1 ? q->out[0].shape.dim[rank - 2] : 1;
    for (int d = rank - 3; d >= s->batch_rank; d--) {
        s->batch_dim[d] = q->out[0].shape.dim[d];
        s->a_batch[d] = rows * s->a_row;
        s->c_batch[d] = rows * s->c_row;
        rows *= s->batch_dim[d];
    }
    for (int d = s->batch_rank; d < rank - 2; d++) {
        s->batch *= s->batch_dim[d];
        s->m /= s->batch_dim[d];
    }
    s->batch_rank = rank - 2;
}

static enum status read_posts(const struct kernel_query *q, struct product *p, struct error *why)
{
    p->axes = axes_of(q, p->shape.batch_rank);
    TRY(gemm_post_from(q, &p->axes, &p->post, why));
    float beta = (float)node_float(q->node, "beta", 1);
    if (strcmp(q->node->op->name, "Gemm") == 0 && q->node->op_inputs > 2 && query_in(q, 2) &&
        beta != 0.0f)
        TRY(gemm_post_bias(q, &p->axes, 2, beta, &p->post, why));
    return STATUS_OK;
}

static enum status product_from(const struct kernel_query *q, struct product *p, struct error *why)
{
    p->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    if (read_posts(q, p, why) == STATUS_OK)
        return STATUS_OK;
    if (q->in[0].shape.rank < 3 || p->shape.batch_rank == q->out[0].shape.rank - 2)
        return STATUS_UNSUPPORTED;
    unfold(q, &p->shape);
    return read_posts(q, p, why);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct product p;
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (!q->fixed[1])
        return UNSUPPORTED(why, "the right operand is not constant");
    TRY(product_from(q, &p, why));
    const struct matmul_shape *s = &p.shape;
    if (s->m * s->n * s->k * s->batch == 0)
        return UNSUPPORTED(why, "an empty product");
    if (s->a_col != 1 && s->k > 1)
        return UNSUPPORTED(why, "rows of the left operand are not dense");
    if (s->c_col != 1 && s->n > 1)
        return UNSUPPORTED(why, "rows of the result are not dense");
    for (int d = 0; d < s->batch_rank; d++)
        if (s->b_batch[d])
            return UNSUPPORTED(why, "every batch has weights of its own");
    return STATUS_OK;
}

/* Large results are streamed, but for the last two variants. */
static bool is_large(const struct kernel_query *q)
{
    return desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
}

static struct gemm_plan plan_of(const struct kernel_query *q, const struct matmul_shape *s,
                                int variant)
{
    const struct tuning *t = &tunings[variant % ARRAY_COUNT(tunings)];
    bool collide = s->m >= t->rows && s->k >= 64 && gemm_rows_collide(s->a_row, t->rows);
    struct gemm_size size = {.batch = s->batch, .m = s->m, .n = s->n, .taps = 1, .k = s->k,
                             .vectors = t->vectors, .rows = t->rows, .block_k = t->block_k,
                             .copy = collide != t->other_copy, .threads = q->threads,
                             .stream = is_large(q) && variant < ARRAY_COUNT(tunings)};
    return gemm_plan_for(&size);
}

static int variants(const struct kernel_query *q)
{
    return ARRAY_COUNT(tunings) + (is_large(q) ? 2 : 0);
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    struct product p;
    product_from(q, &p, NULL);
    struct gemm_plan plan = plan_of(q, &p.shape, variant);
    gemm_describe(&plan, text, size);
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    struct product p;
    product_from(q, &p, NULL);
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
    struct product p;
    TRY(product_from(q, &p, err));
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
    struct gemm_source_b from = {.b = q->fixed[1], .row = p.shape.b_row, .column = p.shape.b_col,
                                 .scale = (float)node_float(q->node, "alpha", 1)};
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

struct rows_source {
    const float *a;
    const struct matmul_shape *shape;
};

static void rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct rows_source *from = wanted->source;
    const struct matmul_shape *s = from->shape;
    const float *a = from->a + wanted->row * s->a_row;
    (void)step;
    if (s->batch_rank)
        a += matmul_offset_of(s, wanted->batch).a;
    for (int64_t m = 0; m < wanted->count; m++)
        to[m] = a + m * s->a_row;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)q;
    struct rows_source source = {args->in[0], &state->shape};
    struct gemm_call call = {.rows = rows,
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
    NATIVE(matmul_packed),
    .ops = OPS("MatMul", "Gemm"),
    .packs = 1u << 1,
    .supports = supports,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
