/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm whose right operand comes at run time, or differs between batches: it is packed
 * into panels first, in scratch memory. With many batches every thread packs and multiplies whole
 * batches by itself, so that the panels stay in its second cache; with few, all threads pack
 * together and then multiply together. A left operand whose rows are not dense (transposed) is
 * turned chunk by chunk on the way. */
#include <stdio.h>
#include <string.h>

#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/matmul_product.h"

enum { BATCHES_PER_THREAD = 3, LINE_FLOATS = 16 };

struct kernel_state {
    struct matmul_product product;
    struct gemm_plan plan;
    bool alone;        /* one thread per batch */
    bool turn;         /* rows of A are copied */
    int64_t turned;    /* floats of such a row */
    int64_t packed;    /* floats of one batch of B */
    size_t turn_bytes; /* per thread */
    int threads;
};

struct tuning {
    int vectors, rows;
};

/* Best guesses first. */
#if defined(__AVX512F__)
static const struct tuning tunings[] = {{4, 6}, {3, 8}, {2, 12}};
#elif defined(__AVX2__)
static const struct tuning tunings[] = {{2, 6}, {3, 4}};
#else
static const struct tuning tunings[] = {{4, 4}};
#endif

static size_t whole_lines(size_t bytes)
{
    return (bytes + ALIGN_TENSOR - 1) / ALIGN_TENSOR * ALIGN_TENSOR;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct tuning *t = &tunings[variant];
    TRY(matmul_product_from(q, &s->product, why));
    const struct matmul_shape *shape = &s->product.shape;
    bool same = q->fixed[1] != NULL;
    for (int d = 0; d < shape->batch_rank; d++)
        same = same && !shape->b_batch[d];
    if (same && (shape->a_col == 1 || shape->k == 1))
        return UNSUPPORTED(why, "the right operand is constant: matmul_packed");
    s->threads = q->threads;
    s->turn = shape->a_col != 1 && shape->k > 1;
    s->alone = shape->batch >= (int64_t)q->threads * BATCHES_PER_THREAD;
    struct gemm_size size = {.batch = s->alone ? 1 : shape->batch,
                             .m = shape->m,
                             .n = shape->n,
                             .taps = 1,
                             .k = shape->k,
                             .vectors = t->vectors,
                             .rows = t->rows,
                             .block_k = 512,
                             .threads = s->alone ? 1 : q->threads};
    size.copy = !s->turn && shape->m >= t->rows && shape->k >= 64 &&
                gemm_rows_collide(shape->a_row, t->rows);
    s->plan = gemm_plan_for(&size);
    s->packed = gemm_packed_floats(&s->plan);
    s->turned = (shape->k + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS + LINE_FLOATS;
    int64_t rows = s->plan.row_tiles * (s->plan.rows_even + 1);
    s->turn_bytes = s->turn ? (size_t)(rows * s->turned) * sizeof(float) : 0;
    return STATUS_OK;
}

/* Workspace: per thread (alone) or once: packed B; then the turned rows; then gemm's own. */
static size_t packed_bytes(const struct kernel_state *s)
{
    int64_t batches = s->alone ? 1 : s->product.shape.batch;
    return whole_lines((size_t)(s->packed * batches) * sizeof(float));
}

static size_t alone_bytes(const struct kernel_state *s)
{
    return packed_bytes(s) + whole_lines(s->turn_bytes) + whole_lines(gemm_workspace(&s->plan));
}

static size_t workspace(const struct kernel_state *s)
{
    if (s->alone)
        return alone_bytes(s) * (size_t)s->threads;
    return packed_bytes(s) + whole_lines(s->turn_bytes) * (size_t)s->threads +
           gemm_workspace(&s->plan);
}

static int variants(const struct kernel_state *s)
{
    (void)s;
    return ARRAY_COUNT(tunings);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    char cut[40];
    gemm_describe(&s->plan, cut, sizeof(cut));
    snprintf(text, size, "%s%s", s->alone ? "per batch " : "", cut);
}

/* ---- launch ---- */

static void turn_rows(const struct gemm_rows *rows)
{
    const struct matmul_rows_source *from = rows->source;
    const struct matmul_shape *s = from->shape;
    const float *a = from->a + matmul_offset_of(s, rows->batch).a + rows->row * s->a_row;
    int64_t line = (s->k + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS + LINE_FLOATS;
    float *to = rows->scratch;
    for (int64_t k0 = 0; k0 < s->k; k0 += LINE_FLOATS) {
        int64_t k1 = k0 + LINE_FLOATS < s->k ? k0 + LINE_FLOATS : s->k;
        for (int64_t m = 0; m < rows->count; m++)
            for (int64_t k = k0; k < k1; k++)
                to[m * line + k] = a[m * s->a_row + k * s->a_col];
    }
}

struct turned_source {
    struct matmul_rows_source rows; /* first: turn_rows sees it */
    const struct gemm_plan *plan;
};

/* Rows of a chunk lie in scratch from its first row on. */
static void turned_rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct turned_source *from = wanted->source;
    int64_t k = from->rows.shape->k, base = wanted->row - wanted->first;
    int64_t line = (k + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS + LINE_FLOATS;
    (void)step;
    for (int64_t m = 0; m < wanted->count; m++)
        to[m] = (const float *)wanted->scratch + (base + m) * line;
}

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

static void pack_panels(const struct job *job, int64_t batch, int64_t first, int64_t last,
                        float *to)
{
    const struct matmul_product *p = &job->state->product;
    struct gemm_source_b from = {.b = (const float *)job->args->in[1] +
                                      matmul_offset_of(&p->shape, batch).b,
                                 .row = p->shape.b_row,
                                 .column = p->shape.b_col,
                                 .scale = p->alpha};
    gemm_pack_b(&job->state->plan, &from, first, last, to);
}

static void multiply(const struct job *job, int64_t batch, char *turned, char *gemm,
                     const float *packed)
{
    const struct kernel_state *s = job->state;
    const struct kernel_args *args = job->args;
    const struct matmul_shape *shape = &s->product.shape;
    struct turned_source source = {{args->in[0], shape}, &s->plan};
    struct gemm_call call = {.rows = s->turn ? turned_rows : matmul_rows,
                             .begin = s->turn ? turn_rows : NULL,
                             .source = &source,
                             .scratch = turned,
                             .scratch_bytes = whole_lines(s->turn_bytes),
                             .b = packed,
                             .b_batch = s->alone ? 0 : s->packed,
                             .c = args->out[0],
                             .c_row = shape->c_row,
                             .post = &s->product.post,
                             .in = args->in,
                             .batch_first = batch,
                             .batch_rank = shape->batch_rank,
                             .batch_dim = shape->batch_dim,
                             .c_batch = shape->c_batch,
                             .workspace = gemm};
    gemm_run(&s->plan, &call, s->alone ? NULL : args->pool);
}

static void one_batch(void *context, int64_t batch, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    char *memory = (char *)job->args->workspace + (size_t)thread * alone_bytes(s);
    char *turned = memory + packed_bytes(s);
    float *packed = (float *)(void *)memory;
    pack_panels(job, batch, 0, s->plan.panels, packed);
    multiply(job, batch, turned, turned + whole_lines(s->turn_bytes), packed);
}

static void pack_one(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t batch = task / s->plan.panels, panel = task % s->plan.panels;
    (void)thread;
    pack_panels(job, batch, panel, panel + 1, (float *)job->args->workspace + batch * s->packed);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args};
    if (state->alone) {
        pool_run(args->pool, state->product.shape.batch, one_batch, &job);
        return;
    }
    pool_run(args->pool, state->product.shape.batch * state->plan.panels, pack_one, &job);
    char *turned = (char *)args->workspace + packed_bytes(state);
    multiply(&job, 0, turned, turned + whole_lines(state->turn_bytes) * (size_t)state->threads,
             args->workspace);
}

REGISTER_KERNEL(matmul_dynamic) = {
    NATIVE(matmul_dynamic),
    .ops = OPS("MatMul", "Gemm"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
