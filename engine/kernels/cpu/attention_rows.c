/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries, as when text is generated token by token: keys and values are read
 * where they lie, once for all heads that share them. A task has a stretch of the keys of one head,
 * so that one long sequence keeps all threads busy; where there are several, their sums are put
 * together in the end (Dao et al., "Flash-Decoding", 2023). Stretches are as long whatever the
 * number of threads is, and so are results the same.
 */
#include <math.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/attention_scores.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/ops/lib/strided.h"

enum {
    QUERIES_MAX = 16, /* beyond, attention_flash wins by far */
    ROWS_MAX = 128,   /* of all heads that share their keys */
    STRETCH = 256,    /* keys of a task */
    SCORE_STRIDE = STRETCH + 16,
    SUMS = VL == 16 ? 4 : 2, /* rows at a time, of scores and of results */
    WIDE = 4,                /* vectors of a result at a time */
    PAIR = 2,                /* keys that share the reading of queries */
    AHEAD = 32,              /* keys between what is read and what is prefetched */
    LINE = 64,
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct attention_shape s;
    const void *q, *k, *v, *mask; /* mask may be NULL */
    int64_t mask_stride[4];       /* batch, head, query, key */
    void *y;
    bool masked, bf16, words;
    int64_t depth;     /* floats or words of a query or key */
    int64_t pitch;     /* the same of a packed query: whole vectors */
    int64_t rows;      /* queries of the heads that share keys: head by head */
    int64_t stretches; /* of a head's keys */
    int64_t width;     /* floats of a row's partial result: largest, total, sums */
    float *partial;    /* [batch, kv head, stretch, row][width], if there are several stretches */
    char *scratch;
    size_t thread_bytes;
    int threads;
};

/* The memory of a thread. */
struct scratch {
    float *queries; /* [rows][pitch], scaled unless they are words; zeros after the depth */
    float *scores;  /* [rows][SCORE_STRIDE] */
    float *sums;    /* [rows][width], if there is one stretch */
};

enum { LARGEST, TOTAL, SUM };

/* ---- set-up ---- */

static size_t lay_out(const struct kernel_state *p, char *base, struct scratch *s)
{
    const int64_t counts[] = {p->rows * p->pitch, p->rows * SCORE_STRIDE,
                              p->stretches > 1 ? 0 : p->rows * p->width};
    float *parts[ARRAY_COUNT(counts)];
    size_t at = 0;
    for (int k = 0; k < ARRAY_COUNT(counts); k++) {
        parts[k] = base ? (float *)(void *)(base + at) : NULL;
        at += (size_t)round_up(counts[k], ALIGN_TENSOR / (int64_t)sizeof(float)) * sizeof(float);
    }
    if (s)
        *s = (struct scratch){parts[0], parts[1], parts[2]};
    return at;
}

static enum status shape_of_query(const struct kernel_query *q, struct attention_shape *s,
                                  struct error *why)
{
    const struct desc *k = query_in(q, 1), *v = query_in(q, 2);
    return attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL,
                                v ? &v->shape : NULL, s, why);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *p,
                        struct error *why)
{
    (void)variant;
    struct attention_shape *s = &p->s;
    TRY(query_plain_floats(q, &p->bf16, why));
    TRY(shape_of_query(q, s, why));
    p->rows = s->queries * s->group;
    if (s->queries > QUERIES_MAX || p->rows > ROWS_MAX)
        return UNSUPPORTED(why,
                           "%lld queries, more than %d, or more than %d with those of heads "
                           "that share keys",
                           (long long)s->queries, (int)QUERIES_MAX, (int)ROWS_MAX);
    p->words = attention_has_words(s, p->bf16);
    p->depth = p->words ? s->head_size / 2 : s->head_size;
    p->pitch = round_up(p->depth, VL);
    p->stretches = divide_up(s->keys, STRETCH);
    p->width = SUM + s->head_size;
    p->threads = q->threads;
    p->thread_bytes = lay_out(p, NULL, NULL);
    const struct desc *mask = query_in(q, 3);
    p->masked = mask;
    if (mask)
        strided_broadcast(mask, 4, p->mask_stride);
    return STATUS_OK;
}

static size_t partial_bytes(const struct kernel_state *p)
{
    int64_t lines = p->s.batch * p->s.kv_heads * p->stretches * p->rows;
    return p->stretches > 1 ? (size_t)round_up(lines * p->width, 16) * sizeof(float) : 0;
}

static size_t workspace(const struct kernel_state *p)
{
    return partial_bytes(p) + (size_t)p->threads * p->thread_bytes;
}

/* ---- a task ---- */

struct task {
    const struct kernel_state *job;
    struct scratch s;
    int64_t batch, head; /* of keys and values */
    int64_t key, count;  /* its stretch of the keys */
    float *sums;         /* [rows][width] */
};

/* Which head and query of the batch a row is. */
static int64_t head_of_row(const struct task *t, int64_t row)
{
    return t->head * t->job->s.group + row / t->job->s.queries;
}

static int64_t query_of_row(const struct task *t, int64_t row)
{
    return row % t->job->s.queries;
}

static const void *query_at(const struct task *t, int64_t row)
{
    const struct attention_shape *a = &t->job->s;
    int64_t line = t->batch * a->queries + query_of_row(t, row);
    int64_t at = line * a->q_row + a->q_start + head_of_row(t, row) * a->head_size;
    return float_at(t->job->q, at, t->job->bf16);
}

static void pack_queries(const struct task *t)
{
    const struct kernel_state *job = t->job;
    vf scale = vf_set1((float)job->s.scale);
    for (int64_t r = 0; r < job->rows; r++) {
        const void *q = query_at(t, r);
        float *to = t->s.queries + r * job->pitch;
        for (int64_t d = 0; d < job->depth; d += VL) {
            vm lanes = vm_first(job->depth - d);
            if (job->words)
                vf_store(to + d, vf_load_m((const float *)q + d, lanes));
            else if (job->bf16)
                vf_store(to + d, vf_mul(scale, vf_read_m(q, d, lanes, true)));
            else
                vf_store(to + d, vf_mul(scale, vf_read_m(q, d, lanes, false)));
        }
    }
}

/* Element 0 of the head's first key or value of the task. */
static int64_t start_of(const struct task *t, int64_t start, int64_t row)
{
    const struct attention_shape *a = &t->job->s;
    return start + (t->batch * a->keys + t->key) * row + t->head * a->head_size;
}

/* The lines of a row to the second cache: between the rows of a head may lie those of others, and
 * then all of them fall on few lines of the first. */
SIMD_INLINE void prefetch_row(const struct task *t, const void *row, bool bf16)
{
    int64_t bytes = t->job->s.head_size * (bf16 ? 2 : 4);
    for (int64_t at = 0; at < bytes; at += LINE)
        simd_prefetch_second((const char *)row + at);
}

/* Part of a key, as floats or, in the bits of floats, as words. */
SIMD_INLINE vf key_part(const void *key, int64_t d, vm lanes, bool bf16, bool words)
{
    return words ? vf_load_m((const float *)key + d, lanes) : vf_read_m(key, d, lanes, bf16);
}

/* Products of `keys` keys with rows [first, first + rows), not yet summed over the lanes; rows and
 * keys are constants. dots: [row][key of the vector]. */
SIMD_INLINE void dot_keys(const struct task *t, const void *key, int64_t first, int rows, int keys,
                          vf (*dots)[VL], bool bf16, bool words)
{
    const struct kernel_state *job = t->job;
    const float *q = t->s.queries + first * job->pitch;
    vf sums[SUMS][PAIR];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < keys; j++)
            sums[r][j] = vf_zero();
    for (int64_t d = 0; d < job->depth; d += VL) {
        vm lanes = vm_first(job->depth - d);
        vf part[PAIR];
        for (int j = 0; j < keys; j++)
            part[j] = key_part(float_at(key, j * job->s.k_row, bf16), d, lanes, bf16, words);
        for (int r = 0; r < rows; r++) {
            vf query = vf_load(q + r * job->pitch + d);
            for (int j = 0; j < keys; j++)
                sums[r][j] = words ? dot_words(sums[r][j], query, part[j])
                                   : vf_fma(query, part[j], sums[r][j]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < keys; j++)
            dots[r][j] = sums[r][j];
}

/* Scores of a vector of keys, `count` of which there are; rows is a constant. */
SIMD_INLINE void score_vector(const struct task *t, const void *key, int64_t at, int64_t count,
                              int64_t first, int rows, bool bf16, bool words)
{
    const struct kernel_state *job = t->job;
    vf dots[SUMS][VL], scale = vf_set1(words ? (float)job->s.scale : 1);
    int64_t j = 0;
    for (; j + PAIR <= count && j + PAIR <= VL;
         j += PAIR, key = float_at(key, PAIR * job->s.k_row, bf16)) {
        if (first == 0 && at + j + AHEAD + 1 < t->count) {
            prefetch_row(t, float_at(key, AHEAD * job->s.k_row, bf16), bf16);
            prefetch_row(t, float_at(key, (AHEAD + 1) * job->s.k_row, bf16), bf16);
        }
        vf(*to)[VL] = (vf(*)[VL]) & dots[0][j];
        dot_keys(t, key, first, rows, PAIR, to, bf16, words);
    }
    if (j < count && j < VL) {
        dot_keys(t, key, first, rows, 1, (vf(*)[VL]) & dots[0][j], bf16, words);
        j++;
    }
    for (; j < VL; j++)
        for (int r = 0; r < rows; r++)
            dots[r][j] = vf_zero();
    for (int r = 0; r < rows; r++)
        vf_store(t->s.scores + (first + r) * SCORE_STRIDE + at, vf_mul(scale, sum_rows(dots[r])));
}

SIMD_INLINE void score_keys(const struct task *t, bool bf16, bool words)
{
    const struct kernel_state *job = t->job;
    int64_t row = job->s.k_row, rows = job->rows;
    const void *key = float_at(job->k, start_of(t, job->s.k_start, row), bf16);
    for (int64_t at = 0; at < t->count; at += VL, key = float_at(key, VL * row, bf16)) {
        int64_t first = 0, count = t->count - at;
        for (; first + SUMS <= rows; first += SUMS)
            score_vector(t, key, at, count, first, SUMS, bf16, words);
        for (; first + 2 <= rows; first += 2)
            score_vector(t, key, at, count, first, 2, bf16, words);
        if (first < rows)
            score_vector(t, key, at, count, first, 1, bf16, words);
    }
}

/* Scores to weights. Of one stretch among several -inf throughout gives weights of zero. */
static void soften_row(const struct task *t, int64_t row)
{
    const struct kernel_state *job = t->job;
    const int64_t *m = job->mask_stride;
    float *scores = t->s.scores + row * SCORE_STRIDE;
    int64_t query = query_of_row(t, row), seen = attention_seen(&job->s, query) - t->key;
    int64_t at = t->batch * m[0] + head_of_row(t, row) * m[1] + query * m[2] + t->key * m[3];
    const void *mask = job->mask ? float_at(job->mask, at, job->bf16) : NULL;
    for (int64_t key = larger(seen, 0); key < t->count; key++)
        scores[key] = -INFINITY;
    float largest = job->bf16 ? mask_scores(scores, t->count, mask, m[3], true)
                              : mask_scores(scores, t->count, mask, m[3], false);
    bool zeros = largest == -INFINITY && (job->s.zero_empty || job->stretches > 1);
    float *sums = t->sums + row * job->width;
    sums[LARGEST] = largest;
    sums[TOTAL] = exp_scores(scores, t->count, zeros ? 0 : largest, false);
}

/* Weighted values of rows [first, first + rows) from column d on, `wide` vectors; rows and wide are
 * constants. */
SIMD_INLINE void weigh_values(const struct task *t, int64_t first, int rows, int64_t d, int wide,
                              bool bf16)
{
    const struct attention_shape *a = &t->job->s;
    const float *weights = t->s.scores + first * SCORE_STRIDE;
    vm last = vm_first(a->head_size - d - (wide - 1) * VL);
    const void *v = float_at(t->job->v, start_of(t, a->v_start, a->v_row), bf16);
    float *to = t->sums + first * t->job->width + SUM + d;
    vf sums[SUMS][WIDE];
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < wide; n++)
            sums[r][n] = vf_zero();
    for (int64_t j = 0; j < t->count; j++, v = float_at(v, a->v_row, bf16)) {
        if (first == 0 && d == 0 && j + AHEAD < t->count)
            prefetch_row(t, float_at(v, AHEAD * a->v_row, bf16), bf16);
        for (int n = 0; n < wide; n++) {
            vf value =
                n < wide - 1 ? vf_read(v, d + n * VL, bf16) : vf_read_m(v, d + n * VL, last, bf16);
            for (int r = 0; r < rows; r++)
                sums[r][n] = vf_fma(vf_set1(weights[r * SCORE_STRIDE + j]), value, sums[r][n]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < wide; n++)
            vf_store_m(to + r * t->job->width + n * VL, n < wide - 1 ? vm_first(VL) : last,
                       sums[r][n]);
}

SIMD_INLINE void weigh_columns(const struct task *t, int64_t first, int rows, bool bf16)
{
    int64_t size = t->job->s.head_size, d = 0;
    for (; d + (WIDE - 1) * VL < size; d += WIDE * VL)
        weigh_values(t, first, rows, d, WIDE, bf16);
    for (; d < size; d += VL)
        weigh_values(t, first, rows, d, 1, bf16);
}

SIMD_INLINE void weigh_rows(const struct task *t, bool bf16)
{
    int64_t first = 0, rows = t->job->rows;
    for (; first + SUMS <= rows; first += SUMS)
        weigh_columns(t, first, SUMS, bf16);
    for (; first + 2 <= rows; first += 2)
        weigh_columns(t, first, 2, bf16);
    if (first < rows)
        weigh_columns(t, first, 1, bf16);
}

/* ---- results ---- */

/* sums of the row times factor */
SIMD_INLINE void store_row(const struct kernel_state *job, int64_t to, const float *sums,
                           float factor, bool bf16)
{
    int64_t size = job->s.head_size;
    for (int64_t d = 0; d < size; d += VL) {
        vm lanes = vm_first(size - d);
        vf_write_m(job->y, to + d, lanes, vf_mul(vf_set1(factor), vf_load_m(sums + d, lanes)),
                   bf16);
    }
}

static void finish_row(const struct kernel_state *job, int64_t to, const float *sums, float total)
{
    float factor = job->s.zero_empty && total == 0 ? 0 : 1.0f / total;
    if (job->bf16)
        store_row(job, to, sums, factor, true);
    else
        store_row(job, to, sums, factor, false);
}

/* Where the result of a row begins, of head `head` of the keys and values of all batches. */
static int64_t result_at(const struct kernel_state *job, int64_t head, int64_t row)
{
    const struct attention_shape *a = &job->s;
    int64_t batch = head / a->kv_heads, own = head % a->kv_heads * a->group + row / a->queries;
    return ((batch * a->queries + row % a->queries) * a->heads + own) * a->head_size;
}

/* The heads of a stretch follow each other: their keys may lie on the same pages. */
static void run_stretch(void *context, int64_t item, int thread)
{
    const struct kernel_state *job = context;
    int64_t kv_heads = job->s.kv_heads, stretch = item / kv_heads % job->stretches;
    int64_t batch = item / kv_heads / job->stretches, head = batch * kv_heads + item % kv_heads;
    struct task t = {.job = job, .batch = batch, .head = item % kv_heads, .key = stretch * STRETCH};
    t.count = smaller(job->s.keys - t.key, STRETCH);
    lay_out(job, job->scratch + (size_t)thread * job->thread_bytes, &t.s);
    t.sums = t.s.sums;
    if (job->stretches > 1)
        t.sums = job->partial + (head * job->stretches + stretch) * job->rows * job->width;
    pack_queries(&t);
    if (job->words)
        score_keys(&t, true, true);
    else if (job->bf16)
        score_keys(&t, true, false);
    else
        score_keys(&t, false, false);
    for (int64_t row = 0; row < job->rows; row++)
        soften_row(&t, row);
    if (job->bf16)
        weigh_rows(&t, true);
    else
        weigh_rows(&t, false);
    for (int64_t row = 0; row < job->rows && job->stretches == 1; row++) {
        const float *sums = t.sums + row * job->width;
        finish_row(job, result_at(job, head, row), sums + SUM, sums[TOTAL]);
    }
}

/* What all stretches have of a row, put together in the first one's place. */
static void join_stretches(void *context, int64_t item, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t head = item / job->rows, row = item % job->rows, step = job->rows * job->width;
    float *first = job->partial + head * job->stretches * step + row * job->width;
    float largest = -INFINITY, total = 0;
    for (int64_t i = 0; i < job->stretches; i++)
        largest = first[i * step] > largest ? first[i * step] : largest;
    float shift = largest == -INFINITY ? 0 : largest;
    for (int64_t i = 0; i < job->stretches; i++) {
        const float *sums = first + i * step;
        float factor = expf(sums[LARGEST] - shift);
        total += factor * sums[TOTAL];
        for (int64_t d = SUM; d < job->width; d += VL) {
            vm lanes = vm_first(job->width - d);
            vf before = i ? vf_load_m(first + d, lanes) : vf_zero();
            vf_store_m(first + d, lanes,
                       vf_fma(vf_set1(factor), vf_load_m(sums + d, lanes), before));
        }
    }
    finish_row(job, result_at(job, head, row), first + SUM, total);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    int64_t heads = job.s.batch * job.s.kv_heads;
    job.q = args->in[0];
    job.k = job.s.packed ? job.q : args->in[1];
    job.v = job.s.packed ? job.q : args->in[2];
    job.mask = job.masked ? args->in[3] : NULL;
    job.y = args->out[0];
    job.partial = args->workspace;
    job.scratch = (char *)args->workspace + partial_bytes(&job);
    pool_run(args->pool, heads * job.stretches, run_stretch, &job);
    if (job.stretches > 1)
        pool_run(args->pool, heads * job.rows, join_stretches, &job);
}

REGISTER_KERNEL(attention_rows) = {
    NATIVE(attention_rows), .ops = OPS("Attention"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .workspace = workspace,  .launch = launch,
};
