/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorScatter on plain memory, of elements of any type: rows are what lies behind one position
 * along the axis, and rows that come from one place one after the other are one copy. Where the
 * cache is changed in place only the update's rows are touched; else each row of the result is
 * written once, from the update or from the cache. Positions that lie outside a cache that is not
 * circular are left out; the reference reports them as an error. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/op_args.h"

enum { TILE_BYTES = 64 << 10 };

enum { PAST, UPDATE, INDICES };

struct kernel_state {
    int64_t lines, lines_per_sample; /* a line: all positions of one cache */
    int64_t size, count, row_bytes;  /* positions of the cache, of the update */
    int64_t tile, update_tile;       /* rows */
    bool circular, given, wide;      /* wide: 64-bit indices */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *past = &q->in[PAST].shape;
    struct op_args args = args_of_query(q);
    int axis;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[PAST].dtype != q->out[0].dtype || q->in[UPDATE].dtype != q->out[0].dtype)
        return UNSUPPORTED(why, "the update is of another type than the cache");
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the result is not plain");
    s->given = query_in(q, INDICES) != NULL;
    s->wide = s->given && q->in[INDICES].dtype == DTYPE_I64;
    if (s->given && !s->wide && q->in[INDICES].dtype != DTYPE_I32)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(q->in[INDICES].dtype));
    TRY(args_axis(&args, past, -2, &axis, why));
    s->circular = strcmp(node_string(q->node, "mode", "linear"), "circular") == 0;
    s->lines = shape_span(past, 0, axis);
    s->lines_per_sample = shape_span(past, 1, axis);
    s->size = past->dim[axis];
    s->count = q->in[UPDATE].shape.dim[axis];
    s->row_bytes = shape_span(past, axis + 1, past->rank) * (int64_t)dtype_size(q->out[0].dtype);
    s->tile = rows_of_tile(s->lines * s->size, s->row_bytes, TILE_BYTES, q->threads);
    s->update_tile = rows_of_tile(s->lines * s->count, s->row_bytes, TILE_BYTES, q->threads);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *past, *update;
    const void *indices;
    char *y;
};

/* Where the line's run begins: in [0, size) of a circle, else in [-count, size], both of which mean
 * that all of it is outside. */
static int64_t start_of(const struct job *job, int64_t line)
{
    const struct kernel_state *s = job->state;
    if (!s->given)
        return 0;
    int64_t sample = line / s->lines_per_sample;
    int64_t at =
        s->wide ? ((const int64_t *)job->indices)[sample] : ((const int32_t *)job->indices)[sample];
    if (!s->circular)
        return larger(smaller(at, s->size), -s->count);
    at %= s->size;
    return at < 0 ? at + s->size : at;
}

/* Rows [from, end) of one line of the update, into the cache. */
static void put_line(const struct job *job, int64_t line, int64_t from, int64_t end)
{
    const struct kernel_state *s = job->state;
    int64_t start = start_of(job, line);
    if (!s->circular) {
        from = larger(from, -start);
        end = smaller(end, s->size - start);
    }
    while (from < end) {
        int64_t at = start + from < s->size ? start + from : start + from - s->size;
        int64_t rows = smaller(end - from, s->size - at);
        copy_run(job->y + (line * s->size + at) * s->row_bytes,
                 job->update + (line * s->count + from) * s->row_bytes, rows * s->row_bytes);
        from += rows;
    }
}

static void put_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t row = tile * s->update_tile;
    int64_t end = smaller(row + s->update_tile, s->lines * s->count);
    (void)thread;
    while (row < end) {
        int64_t line = row / s->count, from = row - line * s->count;
        int64_t rows = smaller(s->count - from, end - row);
        put_line(job, line, from, from + rows);
        row += rows;
    }
}

/* Positions [at, end) of one line of the result, run by run: `from` is the update's row that would
 * be at `at`, below 0 and from count on there is none. */
static void fill_line(const struct job *job, int64_t line, int64_t at, int64_t end)
{
    const struct kernel_state *s = job->state;
    int64_t start = start_of(job, line);
    while (at < end) {
        int64_t from = at - start;
        if (s->circular && from < 0)
            from += s->size;
        bool updated = from >= 0 && from < s->count;
        int64_t rows = updated ? s->count - from : from < 0 ? -from : s->size - from;
        rows = updated || from < 0 || s->circular ? smaller(rows, end - at) : end - at;
        const char *source = updated ? job->update + (line * s->count + from) * s->row_bytes
                                     : job->past + (line * s->size + at) * s->row_bytes;
        copy_run(job->y + (line * s->size + at) * s->row_bytes, source, rows * s->row_bytes);
        at += rows;
    }
}

static void fill_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t row = tile * s->tile, end = smaller(row + s->tile, s->lines * s->size);
    (void)thread;
    while (row < end) {
        int64_t line = row / s->size, at = row - line * s->size;
        int64_t rows = smaller(s->size - at, end - row);
        fill_line(job, line, at, at + rows);
        row += rows;
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[PAST], args->in[UPDATE], s->given ? args->in[INDICES] : NULL,
                      args->out[0]};
    if (s->row_bytes == 0)
        return;
    if (args->in[PAST] == args->out[0])
        pool_run(args->pool, divide_up(s->lines * s->count, s->update_tile), put_tile, &job);
    else
        pool_run(args->pool, divide_up(s->lines * s->size, s->tile), fill_tile, &job);
}

REGISTER_KERNEL(tensor_scatter_rows) = {
    NATIVE(tensor_scatter_rows),
    .ops = OPS("TensorScatter"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
