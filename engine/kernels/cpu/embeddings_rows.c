/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings: a tile of rows is done pair by pair while it stays in the first cache, so that all
 * tables of a model cost one hand-over to the threads and the result is written to memory once. As
 * in Gather, rows of tables that are larger than the second cache are prefetched well ahead. An
 * index outside its table gives a row of zeros; the reference reports it as an error. */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/ops/lib/embedding_pairs.h"

enum {
    TILE_BYTES = 16 << 10,
    TILES_PER_THREAD = 4,
    ROWS_LEAST = 64,
    AHEAD = 32,            /* rows */
    PREFETCH_BYTES = 1024, /* of a row; the hardware follows by itself from there */
    CACHED_BYTES = 1 << 20
};

struct pair {
    int64_t width,
        rows;   /* of a row of the table; rows: of the table, or a one-hot row's elements */
    int64_t at; /* its first column of the result */
    bool has_table, has_indices, wide, far;
};

struct kernel_state {
    int64_t rows, pitch, rows_per_tile, tiles;
    int count;
    bool sum;
    struct pair *pairs; /* made by prepare */
};

static enum status check_pair(const struct kernel_query *q, int pair, struct error *why)
{
    const struct desc *table = query_in(q, 2 * pair), *indices = query_in(q, 2 * pair + 1);
    if (table && (table->dtype != DTYPE_F32 || !desc_is_plain(table)))
        return UNSUPPORTED(why, "table %d is not plain f32", pair);
    if (indices &&
        ((indices->dtype != DTYPE_I32 && indices->dtype != DTYPE_I64) || !desc_is_plain(indices)))
        return UNSUPPORTED(why, "indices %d are not plain i32 or i64", pair);
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    s->count = q->node->op_inputs / 2;
    for (int k = 0; k < s->count; k++)
        TRY(check_pair(q, k, why));
    const struct shape *y = &q->out[0].shape;
    int64_t bytes = (y->dim[y->rank - 1] + s->count) * (int64_t)sizeof(float);
    s->rows = shape_span(y, 0, y->rank - 1);
    s->sum = embedding_sums(q->node);
    int64_t even = s->rows / ((int64_t)q->threads * TILES_PER_THREAD) + 1;
    int64_t limit = TILE_BYTES / bytes + 1;
    even = larger(even, ROWS_LEAST);
    s->rows_per_tile = even < limit ? even : limit;
    s->tiles = divide_up(s->rows, s->rows_per_tile);
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    int64_t at = 0;
    *packed_bytes = (size_t)s->count * sizeof(*s->pairs);
    s->pairs = calloc(1, *packed_bytes + 1);
    if (!s->pairs)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < s->count; k++) {
        const struct desc *table = query_in(q, 2 * k), *indices = query_in(q, 2 * k + 1);
        int64_t width = embedding_width(q->node, k, table ? &table->shape : NULL);
        s->pairs[k] =
            (struct pair){.width = width,
                          .rows = table ? table->shape.dim[0] : width,
                          .at = at,
                          .has_table = table != NULL,
                          .has_indices = indices != NULL,
                          .wide = indices && indices->dtype == DTYPE_I64,
                          .far = table && indices && (int64_t)desc_bytes(table) > CACHED_BYTES};
        at += s->sum ? 0 : width;
    }
    return STATUS_OK;
}

static void release(struct kernel_state *s)
{
    free(s->pairs);
}

/* ---- one pair of one tile ---- */

struct block {
    const float *table;
    const void *indices;
    float *y; /* row `first` of the result, the pair's first column */
    int64_t first, count, pitch, rows, stop; /* stop: rows of the result in all */
    bool wide, far;
};

SIMD_INLINE int64_t index_at(const struct block *b, int64_t row, bool wide)
{
    int64_t at = wide ? ((const int64_t *)b->indices)[row] : ((const int32_t *)b->indices)[row];
    at += at < 0 ? b->rows : 0;
    return (uint64_t)at < (uint64_t)b->rows ? at : -1;
}

SIMD_INLINE void prefetch(const float *row, int64_t width)
{
    int64_t bytes = width * (int64_t)sizeof(float);
    bytes = smaller(bytes, PREFETCH_BYTES);
    for (int64_t k = 0; k < bytes; k += LINE_BYTES)
        __builtin_prefetch((const char *)row + k, 0, 1);
}

SIMD_INLINE void put_row(float *y, const float *row, int64_t width, bool adds)
{
    if (!adds) {
        copy_run((char *)y, (const char *)row, width * (int64_t)sizeof(float));
        return;
    }
    int64_t k = 0;
    for (; k + VL <= width; k += VL)
        vf_store(y + k, vf_add(vf_load(y + k), vf_load(row + k)));
    vm rest = vm_first(width - k);
    if (k < width)
        vf_store_m(y + k, rest, vf_add(vf_load_m(y + k, rest), vf_load_m(row + k, rest)));
}

/* Inlined once per kind of index and of widths that are usual. */
SIMD_INLINE void take_rows(const struct block *given, int64_t width, bool wide, bool adds)
{
    const struct block b = *given; /* a store could change *given for all that the compiler knows */
    for (int64_t r = b.first; r < b.first + b.count; r++) {
        float *y = b.y + (r - b.first) * b.pitch;
        int64_t at = index_at(&b, r, wide);
        if (b.far && r + AHEAD < b.stop) {
            int64_t next = index_at(&b, r + AHEAD, wide);
            prefetch(b.table + (next < 0 ? 0 : next) * width, width);
        }
        if (at >= 0 && width == 1)
            *y = adds ? *y + b.table[at] : b.table[at];
        else if (at >= 0)
            put_row(y, b.table + at * width, width, adds);
        else if (!adds)
            memset(y, 0, (size_t)width * sizeof(*y));
    }
}

SIMD_INLINE void take_any(const struct block *b, int64_t width, bool adds)
{
    if (b->wide)
        take_rows(b, width, true, adds);
    else
        take_rows(b, width, false, adds);
}

static void take(const struct block *b, int64_t width)
{
    switch (width) {
    case 1:
        take_any(b, 1, false);
        break;
    case 8:
        take_any(b, 8, false);
        break;
    case 16:
        take_any(b, 16, false);
        break;
    case 32:
        take_any(b, 32, false);
        break;
    case 64:
        take_any(b, 64, false);
        break;
    default:
        take_any(b, width, false);
    }
}

static void take_more(const struct block *b, int64_t width)
{
    if (width == 1)
        take_any(b, 1, true);
    else
        take_any(b, width, true);
}

/* Zeros, and a one in lane `at` where there is such a lane. */
SIMD_INLINE vf spike(int64_t at)
{
    static const float zeros[48] = {[16] = 1};
    return vf_load(zeros + ((uint64_t)at < VL ? 16 - at : 17));
}

static void put_one_hot(const struct block *given, int64_t width)
{
    const struct block b = *given;
    int64_t whole = width - width % VL;
    vm rest = vm_first(width - whole);
    for (int64_t r = 0; r < b.count; r++) {
        float *y = b.y + r * b.pitch;
        int64_t at = index_at(&b, b.first + r, b.wide);
        for (int64_t k = 0; k < whole; k += VL)
            vf_store(y + k, spike(at - k));
        if (whole < width)
            vf_store_m(y + whole, rest, spike(at - whole));
    }
}

static void add_one_hot(const struct block *b)
{
    for (int64_t r = 0; r < b->count; r++) {
        int64_t at = index_at(b, b->first + r, b->wide);
        if (at >= 0)
            b->y[r * b->pitch + at] += 1;
    }
}

static void keep(const struct block *given, int64_t width, bool adds)
{
    const struct block b = *given;
    const float *row = b.table + b.first * width;
    for (int64_t r = 0; width == 1 && !adds && r < b.count; r++)
        b.y[r * b.pitch] = row[r];
    for (int64_t r = 0; (width > 1 || adds) && r < b.count; r++, row += width)
        put_row(b.y + r * b.pitch, row, width, adds);
}

/* ---- tiles ---- */

struct job {
    const struct kernel_state *s;
    const struct kernel_args *args;
};

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->s;
    struct block b = {.first = tile * s->rows_per_tile, .pitch = s->pitch, .stop = s->rows};
    b.count = s->rows - b.first < s->rows_per_tile ? s->rows - b.first : s->rows_per_tile;
    for (int k = 0; k < s->count; k++) {
        const struct pair *p = &s->pairs[k];
        bool adds = s->sum && k > 0;
        b.table = job->args->in[2 * k];
        b.indices = job->args->in[2 * k + 1];
        b.y = (float *)job->args->out[0] + b.first * s->pitch + p->at;
        b.rows = p->rows;
        b.wide = p->wide;
        b.far = p->far;
        if (!p->has_table && adds)
            add_one_hot(&b);
        else if (!p->has_table)
            put_one_hot(&b, p->width);
        else if (p->has_indices && adds)
            take_more(&b, p->width);
        else if (p->has_indices)
            take(&b, p->width);
        else
            keep(&b, p->width, adds);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args};
    pool_run(args->pool, s->tiles, run_tile, &job);
}

REGISTER_KERNEL(embeddings_rows) = {
    NATIVE(embeddings_rows),
    .ops = OPS("Embeddings"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
