/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings: a tile of rows is done pair by pair while it stays in the first cache, so that all
 * tables of a model cost one hand-over to the threads and the result is written to memory once. As
 * in Gather, rows of tables that are larger than the second cache are prefetched well ahead. An
 * index outside its table gives a row of zeros; the reference reports it as an error. Tables of
 * bf16 are copied as they are, or summed up in a tile of floats that is rounded at the end. */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_floats.h"
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
    int64_t sums; /* floats per thread in which rows of bf16 are summed up; 0: none are */
    int count, threads;
    bool sum, bf16;
    struct pair *pairs; /* made by prepare */
};

static enum status check_pair(const struct kernel_query *q, int pair, struct error *why)
{
    const struct desc *table = query_in(q, 2 * pair), *indices = query_in(q, 2 * pair + 1);
    if (table && (table->dtype != q->out[0].dtype || !desc_is_plain(table)))
        return UNSUPPORTED(why, "table %d is not plain %s", pair, dtype_name(q->out[0].dtype));
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
    s->bf16 = q->out[0].dtype == DTYPE_BF16;
    if (!s->bf16 && q->out[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32 or bf16");
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    s->count = q->node->op_inputs / 2;
    for (int k = 0; k < s->count; k++)
        TRY(check_pair(q, k, why));
    const struct shape *y = &q->out[0].shape;
    int64_t width = y->dim[y->rank - 1];
    s->rows = shape_span(y, 0, y->rank - 1);
    s->sum = embedding_sums(q->node);
    s->threads = q->threads;
    int64_t bytes = (width + s->count) * (s->bf16 && !s->sum ? 2 : 4);
    int64_t even = s->rows / ((int64_t)q->threads * TILES_PER_THREAD) + 1;
    int64_t limit = TILE_BYTES / bytes + 1;
    even = larger(even, ROWS_LEAST);
    s->rows_per_tile = even < limit ? even : limit;
    s->tiles = divide_up(s->rows, s->rows_per_tile);
    s->sums = s->bf16 && s->sum ? divide_up(s->rows_per_tile * width, 16) * 16 : 0;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->sums * s->threads) * sizeof(float);
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
    const void *table, *indices;
    void *y; /* row `first` of the result, the pair's first column */
    int64_t first, count, pitch, rows, stop; /* stop: rows of the result in all */
    bool wide, far, bf16;                    /* bf16: the table; what is added to is f32 always */
};

/* Bytes of an element of y. */
SIMD_INLINE int64_t element_of(bool adds, bool bf16)
{
    return bf16 && !adds ? 2 : 4;
}

SIMD_INLINE int64_t index_at(const struct block *b, int64_t row, bool wide)
{
    int64_t at = wide ? ((const int64_t *)b->indices)[row] : ((const int32_t *)b->indices)[row];
    at += at < 0 ? b->rows : 0;
    return (uint64_t)at < (uint64_t)b->rows ? at : -1;
}

SIMD_INLINE void prefetch(const void *row, int64_t bytes)
{
    bytes = smaller(bytes, PREFETCH_BYTES);
    for (int64_t k = 0; k < bytes; k += LINE_BYTES)
        __builtin_prefetch((const char *)row + k, 0, 1);
}

SIMD_INLINE void put_row(void *to, const void *row, int64_t width, bool adds, bool bf16)
{
    if (!adds) {
        copy_run(to, row, width * element_of(adds, bf16));
        return;
    }
    float *y = to;
    int64_t k = 0;
    for (; k + VL <= width; k += VL)
        vf_store(y + k, vf_add(vf_load(y + k), vf_read(row, k, bf16)));
    vm rest = vm_first(width - k);
    if (k < width)
        vf_store_m(y + k, rest, vf_add(vf_load_m(y + k, rest), vf_read_m(row, k, rest, bf16)));
}

/* Element `at` of a table of one column. */
SIMD_INLINE void put_one(void *y, const void *table, int64_t at, bool adds, bool bf16)
{
    if (adds)
        *(float *)y += float_read(table, at, bf16);
    else if (bf16)
        *(uint16_t *)y = ((const uint16_t *)table)[at];
    else
        *(float *)y = ((const float *)table)[at];
}

/* Inlined once per kind of index and of widths that are usual. */
SIMD_INLINE void take_rows(const struct block *given, int64_t width, bool wide, bool adds,
                           bool bf16)
{
    const struct block b = *given; /* a store could change *given for all that the compiler knows */
    for (int64_t r = b.first; r < b.first + b.count; r++) {
        char *y = (char *)b.y + (r - b.first) * b.pitch * element_of(adds, bf16);
        int64_t at = index_at(&b, r, wide);
        if (b.far && r + AHEAD < b.stop) {
            int64_t next = index_at(&b, r + AHEAD, wide);
            prefetch(float_at(b.table, (next < 0 ? 0 : next) * width, bf16),
                     width * (bf16 ? 2 : 4));
        }
        if (at >= 0 && width == 1)
            put_one(y, b.table, at, adds, bf16);
        else if (at >= 0)
            put_row(y, float_at(b.table, at * width, bf16), width, adds, bf16);
        else if (!adds)
            memset(y, 0, (size_t)(width * element_of(adds, bf16)));
    }
}

SIMD_INLINE void take_any(const struct block *b, int64_t width, bool adds)
{
    if (b->wide && b->bf16)
        take_rows(b, width, true, adds, true);
    else if (b->wide)
        take_rows(b, width, true, adds, false);
    else if (b->bf16)
        take_rows(b, width, false, adds, true);
    else
        take_rows(b, width, false, adds, false);
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

SIMD_INLINE void put_one_hot(const struct block *given, int64_t width, bool bf16)
{
    const struct block b = *given;
    int64_t whole = width - width % VL;
    vm rest = vm_first(width - whole);
    for (int64_t r = 0; r < b.count; r++) {
        int64_t y = r * b.pitch;
        int64_t at = index_at(&b, b.first + r, b.wide);
        for (int64_t k = 0; k < whole; k += VL)
            vf_write(b.y, y + k, spike(at - k), bf16);
        if (whole < width)
            vf_write_m(b.y, y + whole, rest, spike(at - whole), bf16);
    }
}

static void add_one_hot(const struct block *b)
{
    float *y = b->y;
    for (int64_t r = 0; r < b->count; r++) {
        int64_t at = index_at(b, b->first + r, b->wide);
        if (at >= 0)
            y[r * b->pitch + at] += 1;
    }
}

SIMD_INLINE void keep(const struct block *given, int64_t width, bool adds, bool bf16)
{
    const struct block b = *given;
    int64_t step = b.pitch * element_of(adds, bf16);
    char *y = b.y;
    for (int64_t r = 0; r < b.count; r++, y += step) {
        if (width == 1 && !adds)
            put_one(y, b.table, b.first + r, adds, bf16);
        else
            put_row(y, float_at(b.table, (b.first + r) * width, bf16), width, adds, bf16);
    }
}

SIMD_INLINE void keep_any(const struct block *b, int64_t width, bool adds)
{
    if (b->bf16)
        keep(b, width, adds, true);
    else
        keep(b, width, adds, false);
}

static void put_pair(const struct block *b, const struct pair *p)
{
    if (!p->has_table && b->bf16)
        put_one_hot(b, p->width, true);
    else if (!p->has_table)
        put_one_hot(b, p->width, false);
    else if (p->has_indices)
        take(b, p->width);
    else
        keep_any(b, p->width, false);
}

static void add_pair(const struct block *b, const struct pair *p)
{
    if (!p->has_table)
        add_one_hot(b);
    else if (p->has_indices)
        take_more(b, p->width);
    else
        keep_any(b, p->width, true);
}

/* ---- tiles ---- */

struct job {
    const struct kernel_state *s;
    const struct kernel_args *args;
};

/* Rounds the sums of a tile, which lie row by row, to rows of y from element `to` on. */
static void round_rows(void *y, int64_t to, int64_t pitch, const float *sums, int64_t rows,
                       int64_t width)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < width; k += VL) {
            vm m = vm_first(width - k);
            vf_write_m(y, to + r * pitch + k, m, vf_load_m(sums + r * width + k, m), true);
        }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->s;
    float *sums = s->sums ? (float *)job->args->workspace + thread * s->sums : NULL;
    struct block b = {.first = tile * s->rows_per_tile, .stop = s->rows, .bf16 = s->bf16};
    b.count = s->rows - b.first < s->rows_per_tile ? s->rows - b.first : s->rows_per_tile;
    b.pitch = sums ? s->pairs[0].width : s->pitch;
    if (sums)
        memset(sums, 0, (size_t)(b.count * b.pitch) * sizeof(*sums));
    for (int k = 0; k < s->count; k++) {
        const struct pair *p = &s->pairs[k];
        int64_t to = b.first * s->pitch + p->at;
        b.table = job->args->in[2 * k];
        b.indices = job->args->in[2 * k + 1];
        b.y = sums ? (char *)sums : (char *)job->args->out[0] + to * (s->bf16 ? 2 : 4);
        b.rows = p->rows;
        b.wide = p->wide;
        b.far = p->far;
        if (sums || (s->sum && k > 0))
            add_pair(&b, p);
        else
            put_pair(&b, p);
    }
    if (sums)
        round_rows(job->args->out[0], b.first * s->pitch, s->pitch, sums, b.count, b.pitch);
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
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
