/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather along any axis of plain memory: a row (everything after the axis) per index. Random rows
 * of large tables cost a DRAM latency each (160 ns measured), so rows are prefetched well ahead:
 * twice the bandwidth at 64 to 256 bytes a row. An index outside the table gives a row of zeros;
 * the reference reports it as an error.
 */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

enum {
    TILE_BYTES = 32 << 10,
    AHEAD = 32,            /* rows */
    PREFETCH_BYTES = 1024, /* of a row; the hardware follows by itself from there */
    CACHED_BYTES = 1 << 20 /* smaller tables sit in the second cache: nothing to prefetch */
};

struct kernel_state {
    int64_t outer, size, row_bytes, count; /* count: indices */
    int64_t pitch;                         /* bytes from row to row of the result */
    int64_t rows_per_tile, tiles;
    bool wide, far; /* 64-bit indices; a table that needs prefetching */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(q->in[1].dtype));
    for (int k = 0; k < 2; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    struct op_args args = args_of_query(q);
    int which;
    TRY(args_axis(&args, &q->in[0].shape, 0, &which, why));
    struct axis axis = axis_at(&q->in[0].shape, which);
    s->outer = axis.outer;
    s->size = axis.size;
    s->row_bytes = axis.inner * (int64_t)dtype_size(q->in[0].dtype);
    TRY(row_pitch(&q->out[0], q->in[0].shape.rank - 1 - which, &s->pitch, why));
    s->pitch *= (int64_t)dtype_size(q->out[0].dtype);
    s->count = shape_count(&q->in[1].shape);
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->far = (int64_t)desc_bytes(&q->in[0]) > CACHED_BYTES && s->row_bytes > 0;
    int64_t rows = s->row_bytes ? s->outer * s->count : 0;
    int64_t rows_per_thread = (rows + q->threads * 4 - 1) / (q->threads * 4);
    int64_t rows_per_tile = s->row_bytes ? TILE_BYTES / s->row_bytes + 1 : 1;
    s->rows_per_tile =
        rows_per_thread > 64 && rows_per_thread < rows_per_tile ? rows_per_thread : rows_per_tile;
    s->tiles = divide_up(rows, s->rows_per_tile);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *table;
    const void *index;
    char *dst;
};

/* The row for output row r, or NULL. Copies are at hand: a store to dst could change *state for all
 * that the compiler knows. */
SIMD_INLINE const char *row_at(const struct job *job, const struct kernel_state *s, int64_t r)
{
    int64_t outer = s->outer == 1 ? 0 : r / s->count, k = r - outer * s->count;
    int64_t at = s->wide ? ((const int64_t *)job->index)[k] : ((const int32_t *)job->index)[k];
    at += at < 0 ? s->size : 0;
    if (at < 0 || at >= s->size)
        return NULL;
    return job->table + (outer * s->size + at) * s->row_bytes;
}

SIMD_INLINE void prefetch(const char *row, int64_t bytes)
{
    bytes = smaller(bytes, PREFETCH_BYTES);
    for (int64_t k = 0; row && k < bytes; k += LINE_BYTES)
        __builtin_prefetch(row + k, 0, 1);
}

/* Inlined once per size of small rows, so that the copy is a move or two. */
SIMD_INLINE void rows(const struct job *given, int64_t first, int64_t last, int64_t bytes)
{
    const struct job job = *given;
    const struct kernel_state s = *job.state;
    int64_t stop = s.outer * s.count;
    for (int64_t r = first; r < last; r++) {
        const char *row = row_at(&job, &s, r);
        char *dst = job.dst + r * s.pitch;
        if (s.far && r + AHEAD < stop)
            prefetch(row_at(&job, &s, r + AHEAD), bytes);
        if (row)
            copy_run(dst, row, bytes);
        else
            memset(dst, 0, (size_t)bytes);
    }
}

static void tile_work(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    last = last < s->outer * s->count ? last : s->outer * s->count;
    switch (s->row_bytes) {
    case 4:
        rows(job, first, last, 4);
        break;
    case 8:
        rows(job, first, last, 8);
        break;
    case 64:
        rows(job, first, last, 64);
        break;
    case 128:
        rows(job, first, last, 128);
        break;
    case 256:
        rows(job, first, last, 256);
        break;
    default:
        rows(job, first, last, s->row_bytes);
        break;
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->in[1], args->out[0]};
    pool_run(args->pool, state->tiles, tile_work, &job);
}

REGISTER_KERNEL(gather_rows) = {
    NATIVE(gather_rows), .ops = OPS("Gather"), .state_size = sizeof(struct kernel_state),
    .plan = plan,        .launch = launch,
};
