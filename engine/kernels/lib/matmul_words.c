/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/matmul_words.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_block.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum {
    WORD = 4,
    LINE_WORDS = 16,
    ROWS_PER_TASK = 64,
    A = 0,
    B = 1,
    SCALE = 2,
    OFFSET = 3,
    SIGN = 128
};

static double macs_of(const struct matmul_words *w)
{
    const struct matmul_shape *s = &w->shape;
    return (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
}

enum status matmul_words_check(const struct matmul_words *words, struct error *why)
{
    const struct matmul_shape *s = &words->shape;
    if (s->m * s->n * s->k * s->batch == 0)
        return UNSUPPORTED(why, "an empty product");
    if (s->c_col != 1 && s->n > 1)
        return UNSUPPORTED(why, "rows of the result are not dense");
    return STATUS_OK;
}

/* ---- sizes ---- */

static bool whole_words(const struct matmul_words *w)
{
    const struct matmul_shape *s = &w->shape;
    int64_t all = s->k | s->a_row;
    for (int d = 0; d < s->batch_rank; d++)
        all |= s->a_batch[d];
    return all * w->element % WORD == 0;
}

/* Bytes of it where they are no word, else 0. */
static int element_of_c(const struct matmul_words *w)
{
    if (w->rescales)
        return w->rescale.to != DTYPE_F32;
    return w->element == 1 ? 0 : w->element;
}

static void size_product(const struct kernel_query *q, const struct word_tuning *t,
                         struct kernel_state *s)
{
    const struct matmul_shape *shape = &s->words.shape;
    int per = WORD / s->words.element;
    int64_t row_words = s->turn ? s->line : shape->a_row / per;
    struct gemm_size size = {.batch = shape->batch,
                             .m = shape->m,
                             .n = shape->n,
                             .taps = 1,
                             .k = divide_up(shape->k, per),
                             .math = t->math,
                             .narrow = element_of_c(&s->words),
                             .flip = s->is_bytes && s->words.signed_a,
                             .row_bytes = shape->k * s->words.element,
                             .vectors = t->vectors,
                             .rows = t->rows,
                             .block_k = 512,
                             .stream = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES,
                             .threads = q->threads};
    size.copy = size.flip || (!s->turn && !whole_words(&s->words)) ||
                (shape->m >= t->rows && size.k >= 64 && gemm_rows_collide(row_words, t->rows));
    s->plan = gemm_plan_for(&size);
}

static size_t take(struct scratch *scratch, size_t bytes)
{
    size_t at = scratch->bytes;
    scratch->bytes += aligned_bytes(bytes);
    return at;
}

static void lay_out(const struct kernel_query *q, struct kernel_state *s)
{
    const struct matmul_shape *shape = &s->words.shape;
    struct scratch *scratch = &s->scratch;
    int64_t matrices = s->shared ? 1 : shape->batch, rows = shape->batch * shape->m;
    bool fixed = q->fixed[B] != NULL;
    bool columns = s->is_bytes && !fixed;
    scratch->packed = take(scratch, fixed ? 0 : (size_t)(matrices * s->packed_floats) * WORD);
    scratch->columns = take(scratch, columns ? (size_t)(matrices * s->columns) * WORD : 0);
    scratch->shift_by = take(scratch, s->shifts ? (size_t)s->columns * WORD : 0);
    scratch->scale = take(scratch, s->is_bytes ? (size_t)rows * WORD : 0);
    scratch->shift = take(scratch, s->shifts ? (size_t)rows * WORD : 0);
    scratch->turned = take(scratch, s->turned_bytes * (size_t)q->threads);
    scratch->gemm = take(scratch, gemm_workspace(&s->plan));
}

static bool is_list(const struct kernel_query *q, int input)
{
    return input != NONE && shape_count(&q->in[input].shape) != 1;
}

enum status words_plan(matmul_words_from *from, const struct kernel_query *q, int variant,
                       struct kernel_state *s, struct error *why)
{
    const struct word_tuning *t;
    TRY(from(q, &s->words, why));
    word_tunings(s->words.element, macs_of(&s->words), variant, &t);
    s->zero_per_row = is_list(q, s->words.zero_a);
    s->zero_per_column = is_list(q, s->words.zero_b);
    s->shared = true;
    const struct matmul_shape *shape = &s->words.shape;
    s->is_bytes = s->words.element == 1;
    bool centred = s->words.signed_b || s->words.rescale.w_zero == SIGN;
    s->shifts = s->is_bytes && (!centred || s->words.zero_b != NONE);
    s->turn = shape->a_col != 1 && shape->k > 1;
    int64_t words = (shape->k * s->words.element + WORD - 1) / WORD;
    s->line = round_up(words, LINE_WORDS) + LINE_WORDS;
    for (int d = 0; d < shape->batch_rank; d++)
        s->shared = s->shared && !shape->b_batch[d];
    s->post = s->words.post;
    s->post.light = s->words.element == 1 ? 0 : s->post.light;
    size_product(q, t, s);
    s->turned_bytes =
        s->turn ? (size_t)(s->plan.row_tiles * (s->plan.rows_even + 1) * s->line) * WORD : 0;
    s->packed_floats = gemm_packed_floats(&s->plan);
    s->columns = gemm_bias_floats(&s->plan);
    lay_out(q, s);
    return STATUS_OK;
}

int words_variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    return word_tunings(s->words.element, macs_of(&s->words), INT_MAX, &none);
}

void words_describe(const struct kernel_state *s, char *text, size_t size)
{
    static const char *const names[GEMM_MATH_COUNT] = {
        [GEMM_BF16] = "widened ", [GEMM_BYTES] = "widened "};
    const char *name = names[s->plan.size.math];
    char plan[48];
    gemm_describe(&s->plan, plan, sizeof(plan));
    snprintf(text, size, "%s%s", name ? name : "", plan);
}

size_t words_workspace(const struct kernel_state *s)
{
    return s->scratch.bytes;
}

/* ---- packing ---- */

static void pack_panels(const struct kernel_state *s, const void *b, int64_t batch, int64_t first,
                        int64_t last, float *packed, int32_t *sums)
{
    const struct matmul_shape *shape = &s->words.shape;
    int64_t offset = matmul_offset_of(shape, batch).b * s->words.element;
    struct gemm_source_words from = {.b = (const char *)b + offset,
                                     .k = shape->k,
                                     .row = shape->b_row,
                                     .column = shape->b_col,
                                     .element = s->words.element,
                                     .flip = s->is_bytes && !s->words.signed_b};
    gemm_pack_words(&s->plan, &from, first, last, packed + batch * s->packed_floats,
                    s->is_bytes ? sums + batch * s->columns : NULL);
}

/* Factor and offset of each column. */
static enum status take_factors(const struct kernel_query *q, struct kernel_state *s,
                                size_t *packed_bytes, struct error *err)
{
    size_t bytes = (size_t)s->columns * WORD, given = (size_t)s->words.shape.n * WORD;
    s->scale = memory_alloc(bytes);
    s->offset = memory_alloc(bytes);
    if (!s->scale || !s->offset)
        return FAIL_NO_MEMORY(err);
    memset(s->scale, 0, bytes);
    memset(s->offset, 0, bytes);
    memcpy(s->scale, q->fixed[SCALE], given);
    memcpy(s->offset, q->fixed[OFFSET], given);
    *packed_bytes += 2 * bytes;
    return STATUS_OK;
}

static enum status take_bias(const struct kernel_query *q, struct kernel_state *s,
                             size_t *packed_bytes, struct error *err)
{
    size_t bytes = (size_t)s->columns * WORD;
    s->bias = memory_alloc(bytes);
    if (!s->bias)
        return FAIL_NO_MEMORY(err);
    memset(s->bias, 0, bytes);
    if (gemm_post_take_bias(q, &s->post, s->bias, s->words.shape.n)) {
        *packed_bytes += bytes;
        return STATUS_OK;
    }
    memory_free(s->bias);
    s->bias = NULL;
    return STATUS_OK;
}

enum status words_prepare(const struct kernel_query *q, struct kernel_state *s,
                          size_t *packed_bytes, struct error *err)
{
    if (s->words.rescales)
        TRY(take_factors(q, s, packed_bytes, err));
    if (!s->is_bytes)
        TRY(take_bias(q, s, packed_bytes, err));
    if (!q->fixed[B])
        return STATUS_OK;
    int64_t matrices = s->shared ? 1 : s->words.shape.batch;
    size_t packed = (size_t)(matrices * s->packed_floats) * WORD;
    size_t sums = s->is_bytes ? (size_t)(matrices * s->columns) * WORD : 0;
    s->packed = memory_alloc(packed);
    s->sums = memory_alloc(sums);
    if (!s->packed || !s->sums)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < matrices; k++)
        pack_panels(s, q->fixed[B], k, 0, s->plan.panels, s->packed, s->sums);
    *packed_bytes += packed + sums;
    return STATUS_OK;
}

void words_release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->sums);
    memory_free(state->scale);
    memory_free(state->offset);
    memory_free(state->bias);
}

/* ---- what zero points bring about ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    int64_t panels, panel_tasks; /* tasks beyond pack nothing but sum up rows */
};

static void *scratch_at(const struct job *job, size_t offset)
{
    return (char *)job->args->workspace + offset;
}

/* Zero point `at` of an input (0: its only one), of its unsigned (A) or signed (B) bytes. */
static int32_t zero_point(const struct job *job, int input, bool is_signed, int moved, int64_t at)
{
    if (input == NONE)
        return moved;
    const unsigned char *zeros = job->args->in[input];
    unsigned char zero = zeros[at];
    return (is_signed ? (int32_t)(int8_t)zero : (int32_t)zero) + moved;
}

static void shift_columns(const struct job *job)
{
    const struct matmul_words *w = &job->state->words;
    int32_t *to = scratch_at(job, job->state->scratch.shift_by);
    memset(to, 0, (size_t)job->state->columns * WORD);
    for (int64_t n = 0; n < w->shape.n; n++)
        to[n] = zero_point(job, w->zero_b, w->signed_b, w->signed_b ? 0 : -SIGN,
                           job->state->zero_per_column ? n : 0);
}

static int32_t sum_of_row(const struct job *job, int64_t batch, int64_t row)
{
    const struct matmul_words *w = &job->state->words;
    const struct matmul_shape *s = &w->shape;
    const unsigned char *a = job->args->in[A];
    unsigned char flip = w->signed_a ? SIGN : 0;
    uint32_t sum = 0;
    a += matmul_offset_of(s, batch).a + row * s->a_row;
    for (int64_t k = 0; s->a_col == 1 && k < s->k; k++)
        sum += a[k] ^ flip;
    for (int64_t k = 0; s->a_col != 1 && k < s->k; k++)
        sum += a[k * s->a_col] ^ flip;
    return (int32_t)sum;
}

/* scale and shift of row `at`, counted over all batches. */
static void weigh_row(const struct job *job, int64_t at)
{
    const struct kernel_state *s = job->state;
    const struct matmul_words *w = &s->words;
    int64_t batch = at / w->shape.m, row = at % w->shape.m;
    uint32_t zero = (uint32_t)zero_point(job, w->zero_a, w->signed_a, w->signed_a ? SIGN : 0,
                                         s->zero_per_row ? row : 0) +
                    (uint32_t)w->rescale.x_zero;
    ((int32_t *)scratch_at(job, s->scratch.scale))[at] = (int32_t)(0 - zero);
    if (s->shifts)
        ((int32_t *)scratch_at(job, s->scratch.shift))[at] =
            (int32_t)((uint32_t)w->shape.k * zero - (uint32_t)sum_of_row(job, batch, row));
}

/* ---- launch ---- */

static void begin_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    (void)thread;
    if (task < job->panel_tasks) {
        int64_t batch = task / s->plan.panels, panel = task % s->plan.panels;
        pack_panels(s, job->args->in[B], batch, panel, panel + 1,
                    scratch_at(job, s->scratch.packed), scratch_at(job, s->scratch.columns));
        return;
    }
    int64_t first = (task - job->panel_tasks) * ROWS_PER_TASK, end = first + ROWS_PER_TASK;
    int64_t rows = s->words.shape.batch * s->words.shape.m;
    for (int64_t row = first; row < end && row < rows; row++)
        weigh_row(job, row);
}

static void begin(struct job *job)
{
    const struct kernel_state *s = job->state;
    const struct matmul_shape *shape = &s->words.shape;
    int64_t rows = shape->batch * shape->m, matrices = s->shared ? 1 : shape->batch;
    int64_t row_tasks = s->is_bytes ? divide_up(rows, ROWS_PER_TASK) : 0;
    job->panel_tasks = s->packed ? 0 : matrices * s->plan.panels;
    if (s->shifts)
        shift_columns(job);
    if (job->panel_tasks + row_tasks)
        pool_run(job->args->pool, job->panel_tasks + row_tasks, begin_task, job);
}

/* Rows of A where they lie. */
static void rows_there(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct job *job = wanted->source;
    const struct matmul_words *w = &job->state->words;
    int64_t at = matmul_offset_of(&w->shape, wanted->batch).a + wanted->row * w->shape.a_row;
    const char *a = (const char *)job->args->in[A] + at * w->element;
    (void)step;
    for (int64_t m = 0; m < wanted->count; m++, a += w->shape.a_row * w->element)
        to[m] = (const float *)(const void *)a;
}

/* Rows of A that lie as columns, element by element of a chunk, in the thread's scratch. */
static void turn_rows(const struct gemm_rows *rows)
{
    const struct job *job = rows->source;
    const struct matmul_words *w = &job->state->words;
    const struct matmul_shape *s = &w->shape;
    int64_t at = matmul_offset_of(s, rows->batch).a + rows->row * s->a_row;
    int64_t line = job->state->line * WORD, per_row = s->k * w->element;
    const char *a = (const char *)job->args->in[A] + at * w->element;
    char *to = rows->scratch;
    for (int64_t m = 0; m < rows->count; m++)
        memset(to + m * line + per_row, 0, (size_t)(line - per_row));
    if (s->a_row == 1) {
        struct copy_block block = {a, to, s->a_col * w->element, line, s->k, rows->count};
        copy_block(&block, w->element, false);
        return;
    }
    for (int64_t m = 0; m < rows->count; m++)
        for (int64_t k = 0; k < s->k; k++)
            memcpy(to + m * line + k * w->element, a + (m * s->a_row + k * s->a_col) * w->element,
                   (size_t)w->element);
}

static void rows_turned(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct job *job = wanted->source;
    int64_t line = job->state->line;
    (void)step;
    for (int64_t m = 0; m < wanted->count; m++)
        to[m] = (const float *)wanted->scratch + (wanted->row - wanted->first + m) * line;
}

void words_launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const struct matmul_shape *shape = &s->words.shape;
    struct job job = {.state = s, .args = args};
    begin(&job);
    const void *sums = s->sums ? s->sums : scratch_at(&job, s->scratch.columns);
    struct gemm_rescale rescale = {s->scale, s->offset, s->words.rescale.low, s->words.rescale.high,
                                   s->words.rescale.zero};
    struct gemm_call call = {.rows = s->turn ? rows_turned : rows_there,
                             .begin = s->turn ? turn_rows : NULL,
                             .source = &job,
                             .scratch = scratch_at(&job, s->scratch.turned),
                             .scratch_bytes = s->turned_bytes,
                             .b = s->packed ? s->packed : scratch_at(&job, s->scratch.packed),
                             .b_batch = s->shared ? 0 : s->packed_floats,
                             .bias = s->is_bytes ? sums : s->bias,
                             .bias_batch = s->shared || !s->is_bytes ? 0 : s->columns,
                             .scale = s->is_bytes ? scratch_at(&job, s->scratch.scale) : NULL,
                             .shift = s->shifts ? scratch_at(&job, s->scratch.shift) : NULL,
                             .shift_by = s->shifts ? scratch_at(&job, s->scratch.shift_by) : NULL,
                             .rescale = s->words.rescales ? &rescale : NULL,
                             .c = args->out[0],
                             .c_row = shape->c_row,
                             .post = &s->post,
                             .in = args->in,
                             .batch_rank = shape->batch_rank,
                             .batch_dim = shape->batch_dim,
                             .c_batch = shape->c_batch,
                             .workspace = scratch_at(&job, s->scratch.gemm)};
    gemm_run(&s->plan, &call, args->pool);
}
