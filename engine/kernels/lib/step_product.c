/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/step_product.h"

#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum { SPLIT = 2, PER_WORD = 2, TASK_COLUMNS = 4096 };
enum { FEW_ROWS = 2 }; /* no more: words are worth taking apart for what they save of bandwidth */

/* ---- plans ---- */

/* Words have no end that does not fill them: split rows are completed. */
static struct gemm_plan plan_words(int64_t rows, int64_t n, int64_t k, int threads)
{
    const struct word_tuning *t;
    double macs = (double)(SPLIT * rows) * (double)n * (double)k;
    word_tunings(sizeof(uint16_t), macs, 0, &t);
    struct gemm_size size = {.batch = 1,
                             .m = SPLIT * rows,
                             .n = n,
                             .taps = 1,
                             .k = divide_up(k, PER_WORD),
                             .math = t->math,
                             .vectors = t->vectors,
                             .rows = t->rows,
                             .block_k = 512,
                             .threads = threads};
    size.copy = size.m >= t->rows && size.k >= 64 && gemm_rows_collide(size.k, t->rows);
    return gemm_plan_for(&size);
}

struct step_product step_product_plan(int64_t rows, int64_t n, int64_t k, bool bf16, int threads)
{
    struct step_product p = {.rows = rows, .n = n, .k = k, .bf16 = bf16};
    struct gemm_plan words = plan_words(rows, n, k, threads);
    p.split = bf16 && (words.size.math == GEMM_BF16_DOT || rows <= FEW_ROWS);
    struct gemm_size size = {.batch = 1, .m = rows, .n = n, .taps = 1, .k = k, .threads = threads};
    p.plan = p.split ? words : gemm_variant(&size, k, false, 0);
    return p;
}

/* The workspace. */
struct scratch {
    uint16_t *a; /* split: [rows][SPLIT][whole words of k] */
    float *c;    /* with them, [rows][SPLIT][n] */
    void *gemm;
    size_t bytes;
};

static struct scratch lay_out(const struct step_product *p, void *base)
{
    struct scratch m = {0};
    int64_t rows = p->split ? SPLIT * p->rows : 0;
    m.a = take_bytes(base, &m.bytes, (size_t)(rows * p->plan.size.k) * sizeof(float));
    m.c = take_floats(base, &m.bytes, rows * p->n);
    m.gemm = take_bytes(base, &m.bytes, gemm_workspace(&p->plan));
    return m;
}

size_t step_product_workspace(const struct step_product *p)
{
    return lay_out(p, NULL).bytes;
}

/* ---- weights ---- */

bool step_product_alloc(struct step_product *p, bool biased, size_t *bytes)
{
    size_t panels = (size_t)gemm_packed_floats(&p->plan) * sizeof(float);
    size_t bias = (size_t)gemm_bias_floats(&p->plan) * sizeof(float);
    p->packed = memory_alloc(panels);
    p->bias = biased ? memory_alloc(bias) : NULL;
    if (p->bias)
        memset(p->bias, 0, bias);
    *bytes += panels + (biased ? bias : 0);
    return p->packed && (p->bias || !biased);
}

struct words_job {
    const struct step_product *p;
    struct gemm_source_words from;
};

static void pack_words(void *context, int64_t panel, int thread)
{
    const struct words_job *job = context;
    (void)thread;
    if (job->p->split)
        gemm_pack_words(&job->p->plan, &job->from, panel, panel + 1, job->p->packed, NULL);
    else
        gemm_pack_widened(&job->p->plan, &job->from, panel, panel + 1, job->p->packed);
}

void step_product_pack(const struct step_product *p, const void *weights, int64_t row,
                       int64_t column, struct pool *pool)
{
    struct gemm_source_b from = {.b = weights, .row = row, .column = column, .scale = 1};
    struct words_job words = {
        .p = p,
        .from = {
            .b = weights, .k = p->k, .row = row, .column = column, .element = sizeof(uint16_t)}};
    if (p->bf16)
        pool_run(pool, p->plan.panels, pack_words, &words);
    else
        gemm_pack(&p->plan, &from, pool, p->packed);
}

void step_product_release(struct step_product *p)
{
    memory_free(p->packed);
    memory_free(p->bias);
}

/* ---- running ---- */

struct step_job {
    const struct step_product *p;
    const struct step_rows *rows;
    struct scratch m;
    int64_t parts; /* tasks of a row */
};

static void rows_of(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct step_job *job = rows->source;
    const float *a = job->p->split ? (const float *)(const void *)job->m.a : job->rows->a;
    int64_t a_row = job->p->split ? job->p->plan.size.k : job->rows->a_row;
    (void)step;
    for (int64_t m = 0; m < rows->count; m++)
        to[m] = a + (rows->row + m) * a_row;
}

static void multiply(struct step_job *job, struct pool *pool)
{
    const struct step_product *p = job->p;
    struct gemm_call call = {.rows = rows_of,
                             .source = job,
                             .b = p->packed,
                             .bias = p->split ? NULL : p->bias,
                             .c = p->split ? job->m.c : job->rows->c,
                             .c_row = p->split ? p->n : job->rows->c_row,
                             .workspace = job->m.gemm};
    gemm_run(&p->plan, &call, pool);
}

static void split_row(void *context, int64_t row, int thread)
{
    const struct step_job *job = context;
    (void)thread;
    int64_t k = job->p->k, whole = job->p->plan.size.k * PER_WORD;
    const float *a = job->rows->a + row * job->rows->a_row;
    uint16_t *high = job->m.a + row * SPLIT * whole, *low = high + whole;
    for (int64_t at = 0; at < k; at += VL) {
        vm lanes = vm_first(k - at);
        vf x = vf_load_m(a + at, lanes);
        vf_store_bf16_m(high + at, lanes, x);
        vf_store_bf16_m(low + at, lanes, vf_sub(x, vf_load_bf16_m(high + at, lanes)));
    }
    if (k < whole)
        high[k] = low[k] = 0;
}

static void join_part(void *context, int64_t task, int thread)
{
    const struct step_job *job = context;
    (void)thread;
    const struct step_product *p = job->p;
    int64_t row = task / job->parts, first = task % job->parts * TASK_COLUMNS;
    int64_t end = first + TASK_COLUMNS < p->n ? first + TASK_COLUMNS : p->n;
    const float *high = job->m.c + row * SPLIT * p->n, *low = high + p->n;
    float *c = job->rows->c + row * job->rows->c_row;
    for (int64_t k = first; k < end; k += VL) {
        vm lanes = vm_first(end - k);
        vf sum = vf_add(vf_load_m(high + k, lanes), vf_load_m(low + k, lanes));
        if (p->bias)
            sum = vf_add(sum, vf_load_m(p->bias + k, lanes));
        vf_store_m(c + k, lanes, sum);
    }
}

void step_product_run(const struct step_product *p, const struct step_rows *rows, void *workspace,
                      struct pool *pool)
{
    struct step_job job = {.p = p, .rows = rows, .m = lay_out(p, workspace)};
    job.parts = divide_up(p->n, TASK_COLUMNS);
    if (p->split)
        pool_run(pool, p->rows, split_row, &job);
    multiply(&job, pool);
    if (p->split)
        pool_run(pool, p->rows * job.parts, join_part, &job);
}
