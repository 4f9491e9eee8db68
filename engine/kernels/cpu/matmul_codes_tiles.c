/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits of many rows of A: some columns of the result at a time, whose weights become floats
 * in panels of engine/kernels/lib/gemm.h, which stay in the caches until they are multiplied. As
 * bf16 they are rounded once more. */
#include <limits.h>
#include <stdio.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/matmul_codes.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum { SLAB_BYTES = 4 << 20 };

struct kernel_state {
    struct matmul_codes m;
    struct gemm_plan plan, last; /* of a slab of columns, and of the last one */
    int64_t slab, slabs;         /* columns */
    int threads;
};

static double macs_of(const struct matmul_codes *m)
{
    return (double)m->rows * (double)m->shape.n * (double)m->shape.k;
}

/* ---- sizes ---- */

static struct gemm_size size_of(const struct kernel_query *q, const struct matmul_codes *m,
                                int64_t columns)
{
    return (struct gemm_size){.batch = m->shape.batch,
                              .m = m->shape.m,
                              .n = columns,
                              .taps = 1,
                              .k = m->shape.k,
                              .threads = q->threads};
}

static struct gemm_plan plan_of_words(const struct kernel_query *q, const struct matmul_codes *m,
                                      int64_t columns, int variant)
{
    const struct word_tuning *t;
    struct gemm_size size = size_of(q, m, columns);
    word_tunings(sizeof(uint16_t), macs_of(m), variant, &t);
    size.k = divide_up(m->shape.k, 2);
    size.math = t->math;
    size.narrow = sizeof(uint16_t);
    size.row_bytes = m->shape.k * (int64_t)sizeof(uint16_t);
    size.vectors = t->vectors;
    size.rows = t->rows;
    size.block_k = 512;
    size.copy =
        m->shape.k % 2 || (size.m >= t->rows && size.k >= 64 && gemm_rows_collide(size.k, t->rows));
    return gemm_plan_for(&size);
}

static struct gemm_plan plan_of(const struct kernel_query *q, const struct matmul_codes *m,
                                int64_t columns, int variant)
{
    struct gemm_size size = size_of(q, m, columns);
    return m->bf16 ? plan_of_words(q, m, columns, variant)
                   : gemm_variant(&size, m->shape.a_row, false, variant);
}

/* Whole panels, as many as the caches hold, and some for each thread. */
static int64_t slab_of(const struct kernel_query *q, const struct matmul_codes *m, int vectors)
{
    int64_t panel = (int64_t)vectors * VL, bytes = m->shape.k * (m->bf16 ? 2 : 4);
    int64_t panels = larger(SLAB_BYTES / (bytes * panel), 1);
    panels = larger(panels / q->threads, 1) * q->threads;
    return smaller(panels * panel, m->shape.n);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(matmul_codes_from(q, &s->m, why));
    int64_t n = s->m.shape.n;
    struct gemm_plan whole = plan_of(q, &s->m, n, variant);
    s->threads = q->threads;
    s->slab = slab_of(q, &s->m, whole.size.vectors);
    s->slabs = divide_up(n, s->slab);
    s->plan = plan_of(q, &s->m, s->slab, variant);
    s->last = plan_of(q, &s->m, n - (s->slabs - 1) * s->slab, variant);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    if (s->m.bf16)
        return word_tunings(sizeof(uint16_t), macs_of(&s->m), INT_MAX, &none);
    return gemm_variant_count(&s->plan.size, s->m.shape.a_row, false);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    char plan[48];
    gemm_describe(&s->plan, plan, sizeof(plan));
    snprintf(text, size, "%lld columns, %s", (long long)s->slab, plan);
}

struct scratch {
    float *packed;
    char *floats; /* per thread: rows of B that make a panel */
    size_t thread_bytes;
    void *gemm;
};

static size_t lay_out(const struct kernel_state *s, void *base, struct scratch *scratch)
{
    size_t at = 0, first = gemm_workspace(&s->plan), last = gemm_workspace(&s->last);
    int64_t row = s->m.codes.blocks * s->m.codes.block * (s->m.bf16 ? 2 : 4);
    scratch->packed = take_floats(base, &at, gemm_packed_floats(&s->plan));
    scratch->thread_bytes = aligned_bytes((size_t)(row * s->plan.size.vectors * VL));
    scratch->floats = take_bytes(base, &at, scratch->thread_bytes * (size_t)s->threads);
    scratch->gemm = take_bytes(base, &at, first > last ? first : last);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct scratch scratch;
    return lay_out(s, NULL, &scratch);
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct scratch scratch;
    struct block_code_arrays weights;
    const struct gemm_plan *plan; /* of this slab */
    int64_t first;                /* its first column */
};

static void pack_panel(void *context, int64_t panel, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct block_codes *c = &s->m.codes;
    int64_t width = (int64_t)job->plan->size.vectors * VL, column = panel * width;
    int64_t count = smaller(job->plan->size.n - column, width), row = c->blocks * c->block;
    char *floats = job->scratch.floats + (size_t)thread * job->scratch.thread_bytes;
    for (int64_t n = 0; n < count; n++) {
        void *to = out_at(floats, n * row, s->m.bf16);
        if (s->m.bf16)
            row_of_codes_alike(c, &job->weights, job->first + column + n, to, true);
        else
            row_of_codes_alike(c, &job->weights, job->first + column + n, to, false);
    }
    const char *origin = floats - column * row * (s->m.bf16 ? 2 : 4);
    if (s->m.bf16) {
        struct gemm_source_words from = {
            .b = origin, .k = c->k, .row = 1, .column = row, .element = sizeof(uint16_t)};
        gemm_pack_words(job->plan, &from, panel, panel + 1, job->scratch.packed, NULL);
    } else {
        struct gemm_source_b from = {
            .b = (const float *)(const void *)origin, .row = 1, .column = row, .scale = 1};
        gemm_pack_b(job->plan, &from, panel, panel + 1, job->scratch.packed);
    }
}

static void rows_of_a(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct job *job = wanted->source;
    const struct matmul_codes *m = &job->state->m;
    int64_t row = wanted->batch * m->shape.m + wanted->row;
    (void)step;
    for (int64_t i = 0; i < wanted->count; i++)
        to[i] = float_at(job->args->in[CODES_A], (row + i) * m->shape.k, m->bf16);
}

static void multiply_slab(struct job *job, int64_t slab)
{
    const struct kernel_state *s = job->state;
    const struct matmul_shape *shape = &s->m.shape;
    const void *operands[CODES_BIAS + 1 + POST_MAX] = {0};
    job->plan = slab < s->slabs - 1 ? &s->plan : &s->last;
    job->first = slab * s->slab;
    pool_run(job->args->pool, job->plan->panels, pack_panel, job);
    for (int k = 0; k < s->m.post.count; k++) {
        const struct gemm_step *step = &s->m.post.steps[k];
        if (step->input >= 0)
            operands[step->input] =
                gemm_operand_at(step, job->args->in[step->input], job->first * step->column);
    }
    struct gemm_call call = {.rows = rows_of_a,
                             .source = job,
                             .a_step = 1,
                             .b = job->scratch.packed,
                             .c = out_at(job->args->out[0], job->first, s->m.bf16),
                             .c_row = shape->c_row,
                             .post = &s->m.post,
                             .in = operands,
                             .batch_rank = shape->batch_rank,
                             .batch_dim = shape->batch_dim,
                             .c_batch = shape->c_batch,
                             .workspace = job->scratch.gemm};
    gemm_run(job->plan, &call, job->args->pool);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .args = args, .weights = matmul_codes_arrays(&s->m, args)};
    lay_out(s, args->workspace, &job.scratch);
    for (int64_t slab = 0; slab < s->slabs; slab++)
        multiply_slab(&job, slab);
}

REGISTER_KERNEL(matmul_codes_tiles) = {
    NATIVE(matmul_codes_tiles),
    .ops = OPS("MatMulNBits"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
