/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul whose right operand differs between batches: it is packed into panels first, in scratch
 * memory. With many batches every thread packs and multiplies whole batches by itself, so that the
 * panels stay in its second cache; with few, all threads pack together and then multiply together.
 * A transposed left operand is turned on the way (engine/kernels/lib/gemm.h). */
#include <stdio.h>
#include <string.h>

#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/matmul_product.h"
#include "engine/kernels/lib/workspace.h"

enum { BATCHES_PER_THREAD = 3 };

struct kernel_state {
    struct matmul_product product;
    struct gemm_plan plan;
    bool alone;     /* one thread per batch */
    int64_t packed; /* floats of one batch of B */
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

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct tuning *t = &tunings[variant];
    TRY(matmul_product_from(q, &s->product, why));
    const struct matmul_shape *shape = &s->product.shape;
    bool same = true;
    for (int d = 0; d < shape->batch_rank; d++)
        same = same && !shape->b_batch[d];
    if (same)
        return UNSUPPORTED(why, "the right operand is the same for all batches: matmul_packed");
    s->threads = q->threads;
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
    TRY(matmul_turns(shape, &size.turn, why));
    size.copy = size.turn ||
                (shape->m >= t->rows && shape->k >= 64 && gemm_rows_collide(shape->a_row, t->rows));
    s->plan = gemm_plan_for(&size);
    s->packed = gemm_packed_floats(&s->plan);
    return STATUS_OK;
}

/* Workspace: per thread (alone) or once: packed B, then gemm's own. */
static size_t packed_bytes(const struct kernel_state *s)
{
    int64_t batches = s->alone ? 1 : s->product.shape.batch;
    return aligned_bytes((size_t)(s->packed * batches) * sizeof(float));
}

static size_t alone_bytes(const struct kernel_state *s)
{
    return packed_bytes(s) + aligned_bytes(gemm_workspace(&s->plan));
}

static size_t workspace(const struct kernel_state *s)
{
    if (s->alone)
        return alone_bytes(s) * (size_t)s->threads;
    return packed_bytes(s) + gemm_workspace(&s->plan);
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

static void multiply(const struct job *job, int64_t batch, char *gemm, const float *packed)
{
    const struct kernel_state *s = job->state;
    const struct kernel_args *args = job->args;
    const struct matmul_shape *shape = &s->product.shape;
    struct matmul_rows_source source = {args->in[0], shape};
    struct gemm_call call = {.rows = matmul_rows,
                             .source = &source,
                             .a_step = shape->a_col,
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
    float *packed = (float *)(void *)memory;
    pack_panels(job, batch, 0, s->plan.panels, packed);
    multiply(job, batch, memory + packed_bytes(s), packed);
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
    multiply(&job, 0, (char *)args->workspace + packed_bytes(state), args->workspace);
}

REGISTER_KERNEL(matmul_dynamic) = {
    NATIVE(matmul_dynamic), .ops = OPS("MatMul"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .variants = variants, .describe = describe,
    .workspace = workspace, .launch = launch,
};
