/* SPDX-License-Identifier: Apache-2.0
 *
 * OneHot along a new last axis, elements of two or four bytes: every row is filled with "off" and
 * gets its one "on". A row of thousands of zeros is written at memory speed, short rows at a few
 * cycles each. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"

enum { TILE_BYTES = 32 << 10 };

struct kernel_state {
    int64_t rows, depth, rows_per_tile, tiles;
    int64_t pitch; /* elements from row to row of the result */
    bool wide;     /* 64-bit indices */
    bool half;     /* elements of two bytes */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    int64_t axis = node_int(q->node, "axis", -1);
    if (axis != -1 && axis != q->out[0].shape.rank - 1)
        return UNSUPPORTED(why, "the new axis is not the last");
    size_t element = dtype_size(q->out[0].dtype);
    if (element != 2 && element != 4)
        return UNSUPPORTED(why, "elements of %zu bytes", element);
    if (q->in[0].dtype != DTYPE_I32 && q->in[0].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(q->in[0].dtype));
    if (!desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "only plain indices");
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    s->rows = shape_count(&q->in[0].shape);
    s->depth = q->out[0].shape.dim[q->out[0].shape.rank - 1];
    s->wide = q->in[0].dtype == DTYPE_I64;
    s->half = element == 2;
    s->rows_per_tile = TILE_BYTES / (s->depth * (int64_t)element + 16) + 1;
    s->tiles = divide_up(s->rows, s->rows_per_tile);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *s;
    const void *index;
    uint32_t off, on; /* bits of the two values, whatever their type */
    void *dst;
};

static inline void put(void *dst, int64_t at, uint32_t value, bool half)
{
    if (half)
        ((uint16_t *)dst)[at] = (uint16_t)value;
    else
        ((uint32_t *)dst)[at] = value;
}

static inline void fill(void *dst, int64_t at, uint32_t value, int64_t count, bool half)
{
    size_t element = half ? 2 : 4;
    if (value == 0) {
        memset((char *)dst + at * (int64_t)element, 0, (size_t)count * element);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        put(dst, at + k, value, half);
}

/* half is a constant. */
static inline void fill_rows(const struct job *job, int64_t first, int64_t last, bool half)
{
    const struct kernel_state *s = job->s;
    bool dense = s->pitch == s->depth;
    if (dense)
        fill(job->dst, first * s->depth, job->off, (last - first) * s->depth, half);
    for (int64_t row = first; row < last; row++) {
        int64_t to = row * s->pitch;
        if (!dense)
            fill(job->dst, to, job->off, s->depth, half);
        int64_t at = s->wide ? ((const int64_t *)job->index)[row]
                             : (int64_t)((const int32_t *)job->index)[row];
        at = at < 0 ? at + s->depth : at;
        if (at >= 0 && at < s->depth)
            put(job->dst, to + at, job->on, half);
    }
}

static void work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->s;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    (void)thread;
    last = smaller(last, s->rows);
    if (s->half)
        fill_rows(job, first, last, true);
    else
        fill_rows(job, first, last, false);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.s = s, .index = args->in[0], .dst = args->out[0]};
    size_t element = s->half ? 2 : 4;
    memcpy(&job.off, args->in[2], element); /* the lower bytes come first */
    memcpy(&job.on, (const char *)args->in[2] + element, element);
    pool_run(args->pool, s->tiles, work, &job);
}

REGISTER_KERNEL(one_hot_rows) = {
    NATIVE(one_hot_rows), .ops = OPS("OneHot"), .state_size = sizeof(struct kernel_state),
    .plan = plan,         .launch = launch,
};
