/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention without the matrix of scores in memory. For each head of keys and values these are
 * packed into panels once, for all heads that share it; then, for a handful of queries at a time,
 * scores of a chunk of keys stay in the first cache between the product with the keys, the softmax
 * and the product with the values. Over several chunks the softmax runs on as in Milakov and
 * Gimelshein (2018), Dao et al. (2022). Of bf16 the panels hold words of two elements where the CPU
 * multiplies those (AVX512-BF16), and the weights are rounded to bf16 between the products;
 * otherwise they hold floats.
 */
#include <math.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/attention_scores.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/ops/lib/strided.h"

enum {
    NR = 2 * VL,
    MR = VL == 16  ? 12
         : VL == 8 ? 6
                   : 4,        /* rows: MR x 2 sums fit the registers */
    CHUNK = 512,               /* keys at a time */
    SCORE_STRIDE = CHUNK + 16, /* not a power of two: rows in different sets */
    HEAD_MAX = 256,
    ITEMS_PER_THREAD = 4,
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct attention_shape s;
    const void *q, *k, *v, *mask; /* mask may be NULL */
    int64_t mask_stride[4];       /* batch, head, query, key; 0 where it is broadcast */
    void *y;
    bool masked, bf16;
    bool words;     /* panels hold words of two bf16 */
    int64_t width;  /* head size rounded up to whole panels */
    int64_t depth;  /* floats or words of a query or key */
    int64_t length; /* the same of a value's column, one or two keys each */
    int64_t blocks; /* of MR queries */
    int64_t items_per_head;
    char *workspace;
    size_t thread_bytes;
    int64_t heads; /* of all batches */
    int threads;
};

/* The workspace of a thread. */
struct scratch {
    int64_t *packed_head;         /* whose keys and values the panels hold; -1: nobody's */
    float *keys;                  /* [panel][depth][NR] */
    float *values;                /* [panel][length][NR] */
    float *queries;               /* [depth][MR], scaled unless they are words */
    float *scores;                /* [MR][SCORE_STRIDE]; weights as bf16 at the start of each row */
    float *sums;                  /* [MR][width]: weighted values so far */
    float *rows;                  /* bf16: [VL][head_size] as floats, on their way to panels */
    float largest[MR], total[MR]; /* of each row: maximum, sum of exponentials */
};

/* ---- set-up ---- */

static enum status shape_of_query(const struct kernel_query *q, struct attention_shape *s,
                                  struct error *why)
{
    const struct desc *k = query_in(q, 1), *v = query_in(q, 2);
    return attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL,
                                v ? &v->shape : NULL, s, why);
}

static size_t lay_out(const struct kernel_state *job, char *base, struct scratch *scratch)
{
    const struct attention_shape *s = &job->s;
    int64_t width = round_up(s->head_size, NR);
    const int64_t counts[] = {16, /* packed_head, a cache line of its own */
                              round_up(s->keys, NR) * job->depth,
                              job->length * width,
                              job->depth * MR + VL, /* see pack_queries */
                              (int64_t)MR * SCORE_STRIDE,
                              MR * width,
                              job->bf16 && !job->words ? VL * s->head_size : 0};
    char *parts[7];
    size_t at = 0;
    for (int k = 0; k < 7; k++) {
        parts[k] = base ? base + at : NULL;
        at += (size_t)round_up(counts[k], 16) * sizeof(float);
    }
    if (scratch) {
        scratch->packed_head = (int64_t *)(void *)parts[0];
        scratch->keys = (float *)(void *)parts[1];
        scratch->values = (float *)(void *)parts[2];
        scratch->queries = (float *)(void *)parts[3];
        scratch->scores = (float *)(void *)parts[4];
        scratch->sums = (float *)(void *)parts[5];
        scratch->rows = (float *)(void *)parts[6];
    }
    return at;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *p,
                        struct error *why)
{
    (void)variant;
    struct attention_shape *s = &p->s;
    TRY(query_plain_floats(q, &p->bf16, why));
    TRY(shape_of_query(q, s, why));
    if (s->head_size > HEAD_MAX)
        return UNSUPPORTED(why, "head size %lld is above %d", (long long)s->head_size,
                           (int)HEAD_MAX);
    p->masked = query_in(q, 3);
    if (p->masked)
        strided_broadcast(&q->in[3], 4, p->mask_stride);
    p->width = round_up(s->head_size, NR);
    p->words = attention_has_words(s, p->bf16);
    p->depth = p->words ? s->head_size / 2 : s->head_size;
    p->length = p->words ? divide_up(s->keys, 2) : s->keys;
    p->blocks = divide_up(s->queries, MR);
    p->thread_bytes = lay_out(p, NULL, NULL);
    p->threads = q->threads;
    p->heads = s->batch * s->heads;
    int64_t wanted = p->threads * ITEMS_PER_THREAD;
    p->items_per_head = p->threads > 1 && p->heads ? divide_up(wanted, p->heads) : 1;
    if (p->items_per_head > p->blocks)
        p->items_per_head = p->blocks;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *p)
{
    return (size_t)p->threads * p->thread_bytes;
}

/* ---- packing ---- */

struct head_rows {
    int64_t size;     /* elements of a head */
    int64_t depth;    /* floats or words of it */
    bool bf16, words; /* how they lie in memory, and in columns */
    float *wide;      /* bf16 that are not words: [VL][size] as floats, on their way */
};

/* Columns of words: their bits stay as they are. */
static void turn_words(const float *from, int64_t depth, struct turn turn, int64_t rows)
{
    for (int64_t at = 0; at < depth; at += VL) {
        float *to[VL];
        for (int64_t i = 0; i < VL; i++)
            to[i] = turn.to + (at + i) * turn.to_row;
        turn_columns(from + at, turn.from_row / 2, to, smaller(depth - at, VL), rows);
    }
}

/* Columns of the rows from element `at` on, VL at most; scale: of all but words. */
static void turn_head_rows(const struct head_rows *h, const void *from, int64_t at,
                           struct turn turn, int64_t rows, float scale)
{
    turn.from = float_at(from, at, h->bf16);
    if (h->words) {
        turn_words(turn.from, h->depth, turn, rows);
        return;
    }
    if (h->bf16) {
        for (int64_t r = 0; r < rows && r < VL; r++)
            floats_widen((const uint16_t *)from + at + r * turn.from_row, h->wide + r * h->size,
                         h->size);
        turn.from = h->wide;
        turn.from_row = h->size;
    }
    turn_rows(turn, rows, h->size, vf_set1(scale));
}

static struct head_rows rows_of(const struct kernel_state *job, const struct scratch *s)
{
    return (struct head_rows){.size = job->s.head_size,
                              .depth = job->depth,
                              .bf16 = job->bf16,
                              .words = job->words,
                              .wide = s->rows};
}

static void pack_keys(const struct kernel_state *job, const struct scratch *s, int64_t start)
{
    struct head_rows head = rows_of(job, s);
    int64_t row = job->s.k_row, keys = job->s.keys;
    float *to = s->keys;
    for (int64_t first = 0; first < keys; first += NR, to += job->depth * NR)
        for (int64_t j = 0; j < NR; j += VL) {
            struct turn turn = {.from_row = row, .to = to + j, .to_row = NR};
            turn_head_rows(&head, job->k, start + (first + j) * row, turn, keys - first - j, 1.0f);
        }
}

/* What a panel has of key j from element `from` on, a vector. Words: of key j + 1, too, or 0. */
SIMD_INLINE vf value_of(const struct kernel_state *job, int64_t j, int64_t from, vm lanes,
                        bool bf16, bool words)
{
    vf value = vf_read_m(job->v, from, lanes, bf16);
    if (!words)
        return value;
    vi low = vi_and(vi_shift_right(vi_bits(value), 16), vi_set1(0xffff)), high = vi_set1(0);
    if (j + 1 < job->s.keys)
        high = vi_bits(vf_read_m(job->v, from + job->s.v_row, lanes, bf16));
    return vf_bits(vi_or(low, high));
}

SIMD_INLINE void pack_values(const struct kernel_state *job, const struct scratch *s, int64_t start,
                             bool bf16, bool words)
{
    int64_t size = job->s.head_size;
    float *to = s->values;
    for (int64_t column = 0; column < size; column += NR)
        for (int64_t j = 0; j < job->s.keys; j += words ? 2 : 1, to += NR) {
            int64_t from = start + j * job->s.v_row + column;
            vm first = vm_first(size - column), second = vm_first(size - column - VL);
            vf_store(to, value_of(job, j, from, first, bf16, words));
            vf_store(to + VL, value_of(job, j, from + VL, second, bf16, words));
        }
}

/* A vector may reach over the MR queries into the next line, which is written after it. */
static void pack_queries(const struct kernel_state *job, const struct scratch *s, int64_t start,
                         int64_t rows)
{
    struct head_rows head = rows_of(job, s);
    int64_t row = job->s.q_row;
    for (int64_t r = 0; r < MR; r += VL) {
        struct turn turn = {.from_row = row, .to = s->queries + r, .to_row = MR};
        turn_head_rows(&head, job->q, start + r * row, turn, rows - r, (float)job->s.scale);
    }
}

/* ---- products ---- */

/* sums[r] = sum over k of left[k left_step + r left_row] right[k][0 .. NR); rows and words
 * are constants. */
SIMD_INLINE void multiply_tile(const float *left, int64_t left_step, int64_t left_row,
                               const float *right, int64_t count, vf (*sums)[2], int rows,
                               bool words)
{
    for (int r = 0; r < rows; r++)
        sums[r][0] = sums[r][1] = vf_zero();
    for (int64_t k = 0; k < count; k++) {
        vf b0 = vf_load(right + k * NR), b1 = vf_load(right + k * NR + VL);
        for (int r = 0; r < rows; r++) {
            vf a = vf_set1(left[k * left_step + r * left_row]);
            sums[r][0] = words ? dot_words(sums[r][0], a, b0) : vf_fma(a, b0, sums[r][0]);
            sums[r][1] = words ? dot_words(sums[r][1], a, b1) : vf_fma(a, b1, sums[r][1]);
        }
    }
}

/* Scores of `rows` queries from row `first` of the block, against a chunk of keys. */
SIMD_INLINE void score_rows(const struct kernel_state *job, const struct scratch *s, int64_t key,
                            int64_t count, int first, int rows, bool words)
{
    vf sums[MR][2], scale = vf_set1((float)job->s.scale);
    for (int64_t j = 0; j < count; j += NR) {
        const float *panel = s->keys + (key + j) * job->depth;
        multiply_tile(s->queries + first, MR, 1, panel, job->depth, sums, rows, words);
        for (int r = 0; r < rows; r++)
            for (int n = 0; n < 2; n++)
                vf_store(s->scores + (first + r) * SCORE_STRIDE + j + n * VL,
                         words ? vf_mul(scale, sums[r][n]) : sums[r][n]);
    }
}

/* sums = shrink sums + weights V */
SIMD_INLINE void weigh_rows(const struct kernel_state *job, const struct scratch *s, int64_t key,
                            int64_t count, const float *shrink, int first, int rows, bool words)
{
    vf sums[MR][2];
    int64_t start = words ? key / 2 : key, steps = words ? divide_up(count, 2) : count;
    const float *weights = s->scores + first * SCORE_STRIDE;
    for (int64_t column = 0; column < job->width; column += NR) {
        const float *panel = s->values + column * job->length + start * NR;
        multiply_tile(weights, 1, SCORE_STRIDE, panel, steps, sums, rows, words);
        for (int r = 0; r < rows; r++) {
            float *to = s->sums + (first + r) * job->width + column;
            vf old = vf_set1(shrink[first + r]);
            vf_store(to, vf_fma(old, vf_load(to), sums[r][0]));
            vf_store(to + VL, vf_fma(old, vf_load(to + VL), sums[r][1]));
        }
    }
}

/* Rows in constant pieces, so that their sums stay in registers. shrink NULL: scores. */
#define BY_PIECES(call)                                                                            \
    do {                                                                                           \
        int first = 0;                                                                             \
        for (; first + MR <= rows; first += MR)                                                    \
            call(MR);                                                                              \
        for (; MR > 8 && first + 8 <= rows; first += 8)                                            \
            call(8);                                                                               \
        for (; MR > 4 && first + 4 <= rows; first += 4)                                            \
            call(4);                                                                               \
        for (; first + 2 <= rows; first += 2)                                                      \
            call(2);                                                                               \
        for (; first < rows; first++)                                                              \
            call(1);                                                                               \
    } while (0)

static void score_block(const struct kernel_state *job, const struct scratch *s, int64_t key,
                        int64_t count, int rows)
{
#define FLOATS(n) score_rows(job, s, key, count, first, n, false)
#define WORDS(n)  score_rows(job, s, key, count, first, n, true)
    if (job->words)
        BY_PIECES(WORDS);
    else
        BY_PIECES(FLOATS);
#undef FLOATS
#undef WORDS
}

static void weigh_block(const struct kernel_state *job, const struct scratch *s, int64_t key,
                        int64_t count, const float *shrink, int rows)
{
#define FLOATS(n) weigh_rows(job, s, key, count, shrink, first, n, false)
#define WORDS(n)  weigh_rows(job, s, key, count, shrink, first, n, true)
    if (job->words)
        BY_PIECES(WORDS);
    else
        BY_PIECES(FLOATS);
#undef FLOATS
#undef WORDS
}

/* ---- softmax ---- */

/* Of the keys from `seen` on. */
static void hide_keys(float *scores, int64_t seen, int64_t count)
{
    for (int64_t key = larger(seen, 0); key < count; key++)
        scores[key] = -INFINITY;
}

/* Scores to weights; *shrink is what the sums so far must be multiplied by. A row that has met
 * nothing but -inf yet keeps weights of zero. */
static void soften_row(const struct kernel_state *job, struct scratch *s, int r, int64_t count,
                       const void *mask, float *shrink)
{
    float *scores = s->scores + r * SCORE_STRIDE;
    int64_t step = job->mask_stride[3];
    float largest = job->bf16 ? mask_scores(scores, count, mask, step, true)
                              : mask_scores(scores, count, mask, step, false);
    largest = largest > s->largest[r] ? largest : s->largest[r];
    float shift = largest == -INFINITY ? 0 : largest;
    *shrink = expf(s->largest[r] - shift);
    float sum = job->words ? exp_scores(scores, count, shift, true)
                           : exp_scores(scores, count, shift, false);
    s->total[r] = *shrink * s->total[r] + sum;
    s->largest[r] = largest;
}

/* ---- blocks ---- */

SIMD_INLINE void store_rows(const struct kernel_state *job, const struct scratch *s, int64_t to,
                            int rows, bool bf16)
{
    int64_t size = job->s.head_size;
    for (int r = 0; r < rows; r++, to += job->s.heads * size) {
        bool empty = job->s.zero_empty && s->total[r] == 0;
        vf factor = vf_set1(empty ? 0 : 1.0f / s->total[r]);
        for (int64_t d = 0; d < size; d += VL)
            vf_write_m(job->y, to + d, vm_first(size - d),
                       vf_mul(factor, vf_load(s->sums + r * job->width + d)), bf16);
    }
}

static void run_block(const struct kernel_state *job, struct scratch *s, int64_t head,
                      int64_t block)
{
    const struct attention_shape *a = &job->s;
    const int64_t *stride = job->mask_stride;
    int64_t b = head / a->heads, h = head % a->heads, query = block * MR;
    int rows = (int)(a->queries - query < MR ? a->queries - query : MR);
    float shrink[MR] = {0};
    pack_queries(job, s, (b * a->queries + query) * a->q_row + a->q_start + h * a->head_size, rows);
    memset(s->sums, 0, (size_t)(MR * job->width) * sizeof(float));
    for (int r = 0; r < rows; r++) {
        s->largest[r] = -INFINITY;
        s->total[r] = 0;
    }
    int64_t mask = b * stride[0] + h * stride[1] + query * stride[2];
    int64_t keys = attention_seen(a, query + rows - 1);
    for (int64_t key = 0; key < keys; key += CHUNK) {
        int64_t count = smaller(keys - key, CHUNK);
        score_block(job, s, key, count, rows);
        for (int r = 0; r < rows; r++) {
            hide_keys(s->scores + r * SCORE_STRIDE, attention_seen(a, query + r) - key, count);
            int64_t at = mask + r * stride[2] + key * stride[3];
            const void *row = job->mask ? float_at(job->mask, at, job->bf16) : NULL;
            soften_row(job, s, r, count, row, &shrink[r]);
        }
        weigh_block(job, s, key, count, shrink, rows);
    }
    int64_t to = ((b * a->queries + query) * a->heads + h) * a->head_size;
    if (job->bf16)
        store_rows(job, s, to, rows, true);
    else
        store_rows(job, s, to, rows, false);
}

/* head: of keys and values, of all batches. */
static void pack_head(const struct kernel_state *job, const struct scratch *s, int64_t head)
{
    const struct attention_shape *a = &job->s;
    int64_t first = head / a->kv_heads * a->keys, at = head % a->kv_heads * a->head_size;
    int64_t values = first * a->v_row + a->v_start + at;
    pack_keys(job, s, first * a->k_row + a->k_start + at);
    if (job->words)
        pack_values(job, s, values, true, true);
    else if (job->bf16)
        pack_values(job, s, values, true, false);
    else
        pack_values(job, s, values, false, false);
    *s->packed_head = head;
}

static void run_item(void *context, int64_t item, int thread)
{
    const struct kernel_state *job = context;
    struct scratch s;
    lay_out(job, job->workspace + (size_t)thread * job->thread_bytes, &s);
    int64_t head = item / job->items_per_head, part = item % job->items_per_head;
    int64_t shared = head / job->s.group;
    if (*s.packed_head != shared)
        pack_head(job, &s, shared);
    int64_t first = part * job->blocks / job->items_per_head;
    int64_t last = (part + 1) * job->blocks / job->items_per_head;
    for (int64_t block = first; block < last; block++)
        run_block(job, &s, head, block);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.q = args->in[0];
    job.k = job.s.packed ? job.q : args->in[1];
    job.v = job.s.packed ? job.q : args->in[2];
    job.mask = job.masked ? args->in[3] : NULL;
    job.y = args->out[0];
    job.workspace = args->workspace;
    for (int t = 0; t < job.threads; t++) {
        struct scratch s;
        lay_out(&job, job.workspace + (size_t)t * job.thread_bytes, &s);
        *s.packed_head = -1;
    }
    pool_run(args->pool, job.heads * job.items_per_head, run_item, &job);
}

REGISTER_KERNEL(attention_flash) = {
    NATIVE(attention_flash),
    .ops = OPS("Attention"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
