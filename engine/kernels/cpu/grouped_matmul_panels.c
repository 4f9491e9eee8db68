/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupedMatMul by the micro-kernels of gemm_tile.h. Weights are packed in panels: once where they
 * are constant. A task is a panel of one expert that somebody chose, and all of its rows: so a
 * panel is read once, memory is read in long runs, and a few experts are enough work for all
 * threads. Tokens are read where they lie; nobody gathers them.
 *
 * The reduction goes in blocks, so that a part of the panel stays in the second cache while all
 * rows pass. Numbers of bf16 are words of two (engine/kernels/lib/gemm_tile.h); their sums wait in
 * scratch memory until the last block rounds them. Offsets and places outside of what there is are
 * moved inside; the reference reports them as errors. */
#include <limits.h>
#include <stdio.h>

#include "base/memory.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum {
    X,
    WEIGHTS,
    OFFSETS,
    ORDER,
    BLOCK_K = 512, /* words of a pass */
    ROWS_MAX = 192 /* of a pass: what they sum up to stays in the second cache */
};

/* Vectors of a panel of floats; the widest is the best for few rows. */
static const int widths[] = {GEMM_VECTORS_MAX, 2};

struct kernel_state {
    struct gemm_plan plan; /* how one expert's weights are packed */
    int64_t rows, experts, chosen;
    int64_t depth;         /* words of a row of x */
    int64_t k_block;       /* words of a pass */
    int64_t packed_floats; /* of one expert */
    double macs;
    bool bf16, gathers;
    bool changing; /* weights come with each launch */
    float *packed; /* NULL: in the workspace */
};

/* ---- sizes ---- */

static enum status size_words(const struct kernel_state *s, int variant, struct gemm_size *size,
                              struct error *why)
{
    const struct word_tuning *t;
    if (size->k % 2)
        return UNSUPPORTED(why, "rows of bf16 that are no whole words");
    word_tunings(sizeof(uint16_t), s->macs, variant, &t);
    size->k /= 2;
    size->math = t->math;
    size->vectors = t->vectors;
    size->rows = t->rows;
    size->narrow = sizeof(uint16_t);
    return STATUS_OK;
}

static enum status check_types(const struct kernel_query *q, struct kernel_state *s,
                               struct error *why)
{
    s->bf16 = q->in[X].dtype == DTYPE_BF16;
    if (!s->bf16 && q->in[X].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32 and bf16");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!descs_are_plain(q->in, q->in_count) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "an input or output is not plain");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(check_types(q, s, why));
    const struct shape *weights = &q->in[WEIGHTS].shape;
    s->rows = q->out[0].shape.dim[0];
    s->experts = weights->dim[0];
    s->chosen = node_int(q->node, "chosen", 1);
    s->gathers = query_in(q, ORDER) != NULL;
    s->changing = !query_fixed(q, WEIGHTS);
    s->macs = (double)s->rows * (double)weights->dim[1] * (double)weights->dim[2];
    if (s->macs <= 0)
        return UNSUPPORTED(why, "an empty product");
    struct gemm_size size = {.batch = 1,
                             .m = s->rows,
                             .n = weights->dim[2],
                             .taps = 1,
                             .k = weights->dim[1],
                             .vectors = widths[s->bf16 ? 0 : variant],
                             .threads = q->threads};
    if (s->bf16)
        TRY(size_words(s, variant, &size, why));
    s->plan = gemm_plan_for(&size);
    s->depth = s->plan.size.k;
    s->k_block = round_up(divide_up(s->depth, divide_up(s->depth, BLOCK_K)), 16);
    s->packed_floats = gemm_packed_floats(&s->plan);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    return s->bf16 ? word_tunings(sizeof(uint16_t), s->macs, INT_MAX, &none) : ARRAY_COUNT(widths);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    const struct gemm_size *g = &s->plan.size;
    snprintf(text, size, "%s%dx%d k%lld", g->math == GEMM_BF16 ? "widened " : "", g->rows,
             g->vectors * VL, (long long)s->k_block);
}

struct scratch {
    int64_t *active; /* experts that have rows */
    char *of_threads;
    size_t thread_bytes, pointer_bytes;
    float *packed;
};

static size_t lay_out(const struct kernel_state *s, void *base, struct scratch *scratch)
{
    size_t at = 0, threads = (size_t)s->plan.size.threads;
    size_t sums = s->bf16 ? (size_t)ROWS_MAX * s->plan.size.vectors * VL * sizeof(float) : 0;
    size_t packed = s->changing ? (size_t)(s->experts * s->packed_floats) * sizeof(float) : 0;
    scratch->pointer_bytes = aligned_bytes(ROWS_MAX * sizeof(float *));
    scratch->thread_bytes = scratch->pointer_bytes + sums;
    scratch->active = take_bytes(base, &at, (size_t)s->experts * sizeof(int64_t));
    scratch->of_threads = take_bytes(base, &at, scratch->thread_bytes * threads);
    scratch->packed = take_bytes(base, &at, packed);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct scratch scratch;
    return lay_out(s, NULL, &scratch);
}

/* ---- packing ---- */

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    size_t bytes = (size_t)(s->experts * s->packed_floats) * sizeof(float);
    if (s->changing)
        return STATUS_OK;
    s->packed = memory_alloc(bytes);
    if (!s->packed)
        return FAIL_NO_MEMORY(err);
    *packed_bytes = bytes;
    return STATUS_OK;
}

static void release(struct kernel_state *s)
{
    memory_free(s->packed);
}

struct packing {
    const struct kernel_state *state;
    const void *weights;
    float *packed;
};

static void pack_panel(void *context, int64_t task, int thread)
{
    const struct packing *job = context;
    const struct kernel_state *s = job->state;
    const struct gemm_plan *p = &s->plan;
    int64_t expert = task / p->panels, panel = task % p->panels, n = p->size.n;
    int64_t k = s->bf16 ? 2 * s->depth : s->depth;
    const void *b = float_at(job->weights, expert * k * n, s->bf16);
    float *to = job->packed + expert * s->packed_floats;
    (void)thread;
    if (s->bf16) {
        struct gemm_source_words from = {
            .b = b, .k = k, .row = n, .column = 1, .element = sizeof(uint16_t)};
        gemm_pack_words(p, &from, panel, panel + 1, to, NULL);
    } else {
        struct gemm_source_b from = {.b = b, .row = n, .column = 1, .scale = 1};
        gemm_pack_b(p, &from, panel, panel + 1, to);
    }
}

static void pack(struct kernel_state *s, const struct kernel_args *args)
{
    struct scratch scratch = {.packed = s->packed};
    if (!s->packed)
        lay_out(s, args->workspace, &scratch);
    struct packing job = {s, args->in[WEIGHTS], scratch.packed};
    pool_run(args->pool, s->experts * s->plan.panels, pack_panel, &job);
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct scratch scratch;
};

/* Rows [first, first + count) of one expert, as many as a pass takes, and a panel of its weights.
 */
struct area {
    const float **rows; /* of x, or tokens */
    float *sums;        /* of bf16, before the last block */
    const float *b;
    int64_t first, count, column;
    int vectors;
};

/* Where an expert's rows begin. */
static int64_t begin_of(const struct job *job, int64_t expert)
{
    const struct kernel_state *s = job->state;
    const int64_t *offsets = job->args->in[OFFSETS];
    if (expert == 0 || expert == s->experts)
        return expert ? s->rows : 0;
    return smaller(larger(offsets[expert], 0), s->rows);
}

static void point_rows(const struct job *job, const struct area *area)
{
    const struct kernel_state *s = job->state;
    const int64_t *order = s->gathers ? job->args->in[ORDER] : NULL;
    int64_t k = s->bf16 ? 2 * s->depth : s->depth;
    for (int64_t i = 0; i < area->count; i++) {
        int64_t row = area->first + i;
        if (order)
            row = smaller(larger(order[row], 0), s->rows - 1) / s->chosen;
        area->rows[i] = float_at(job->args->in[X], row * k, s->bf16);
    }
}

/* Where the rows of a tile, from `row` of the area on, leave their sums. */
static void place_results(const struct job *job, const struct area *area, int64_t row, bool last,
                          struct gemm_tile *tile)
{
    const struct kernel_state *s = job->state;
    int64_t n = s->plan.size.n, at = (area->first + row) * n + area->column;
    int64_t width = (int64_t)area->vectors * VL;
    tile->c = s->bf16 ? area->sums + row * width : (float *)job->args->out[0] + at;
    tile->c_row = s->bf16 ? width : n;
    tile->narrow = s->bf16 && last ? (uint16_t *)job->args->out[0] + at : NULL;
    tile->narrow_row = n;
}

/* Words [k, k + depth) of all rows, in tiles of about one size. */
static void run_block(const struct job *job, const struct area *area, int64_t k, int64_t depth)
{
    const struct gemm_size *size = &job->state->plan.size;
    int64_t width = (int64_t)area->vectors * VL, left = size->n - area->column;
    int64_t tiles = divide_up(area->count, gemm_rows_max(area->vectors));
    bool last = k + depth == size->k;
    struct gemm_tile tile = {.taps = 1,
                             .first = k,
                             .k = depth,
                             .b = area->b + k * width,
                             .last = smaller(left - (area->vectors - 1) * VL, VL),
                             .resume = k > 0};
    tile.ahead = tile.b + depth * width;
    for (int64_t t = 0, row = 0; t < tiles; t++) {
        int64_t count = (area->count - row) / (tiles - t);
        tile.rows = area->rows + row;
        place_results(job, area, row, last, &tile);
        gemm_tile_for(size->math, (int)count, area->vectors)(&tile);
        tile.ahead += count * depth;
        row += count;
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct gemm_plan *p = &s->plan;
    int64_t expert = job->scratch.active[task / p->panels], panel = task % p->panels;
    char *mine = job->scratch.of_threads + (size_t)thread * job->scratch.thread_bytes;
    struct area area = {.rows = (const float **)(void *)mine,
                        .sums = (float *)(void *)(mine + job->scratch.pointer_bytes),
                        .column = panel * p->size.vectors * VL,
                        .vectors = (int)gemm_panel_vectors(p, panel)};
    int64_t end = begin_of(job, expert + 1);
    area.b = job->scratch.packed + expert * s->packed_floats + area.column * s->depth;
    for (area.first = begin_of(job, expert); area.first < end; area.first += ROWS_MAX) {
        area.count = smaller(end - area.first, ROWS_MAX);
        point_rows(job, &area);
        for (int64_t k = 0; k < s->depth; k += s->k_block)
            run_block(job, &area, k, smaller(s->depth - k, s->k_block));
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .args = args};
    int64_t active = 0;
    lay_out(s, args->workspace, &job.scratch);
    if (s->packed)
        job.scratch.packed = s->packed;
    for (int64_t e = 0; e < s->experts; e++)
        if (begin_of(&job, e) < begin_of(&job, e + 1))
            job.scratch.active[active++] = e;
    pool_run(args->pool, active * s->plan.panels, run_task, &job);
}

REGISTER_KERNEL(grouped_matmul_panels) = {
    NATIVE(grouped_matmul_panels),
    .ops = OPS("GroupedMatMul"),
    .packs = 1u << WEIGHTS,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
