/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherElements and ScatterElements on plain memory: each index names a place along one axis of
 * the data, and has its own place along the others. Indices are walked row by row, in their order
 * in memory, so that of places that are named twice the last one stands, or all are added in that
 * order. Scattering, only rows that differ before the axis may go at the same time. An index
 * outside reads a zero and writes nothing; the reference reports it as an error. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/ops/lib/op_args.h"

enum { TASK_ELEMENTS = 4096, COPY_BYTES = 64 << 10 };

struct kernel_state {
    struct shape index, data;
    int axis;
    int64_t steps[RANK_MAX]; /* of the data, in elements */
    int64_t row, rows;       /* indices of a row; rows */
    int64_t last_step;       /* of the data, from index to index of a row beside the axis */
    int64_t rows_per_task, tasks;
    int64_t bytes; /* of the result of scattering */
    size_t element;
    bool wide, scatters, adds;
};

static enum status check(const struct kernel_query *q, bool scatters, struct error *why)
{
    size_t element = dtype_size(q->out[0].dtype);
    const char *reduction = node_string(q->node, "reduction", "none");
    bool adds = strcmp(reduction, "add") == 0;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(q->in[1].dtype));
    if (element != 4 && element != 8)
        return UNSUPPORTED(why, "elements of %zu bytes", element);
    if (scatters && !adds && strcmp(reduction, "none") != 0)
        return UNSUPPORTED(why, "reduction \"%s\"", reduction);
    if (scatters && q->in[2].dtype != q->out[0].dtype)
        return UNSUPPORTED(why, "updates are of another type than the data");
    if (scatters && adds && q->out[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "adds only f32");
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the result is not plain");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    s->scatters = q->in_count > 2;
    TRY(check(q, s->scatters, why));
    TRY(args_axis(&args, &q->in[0].shape, 0, &s->axis, why));
    s->data = q->in[0].shape;
    s->index = q->in[1].shape;
    int last = s->data.rank - 1;
    int64_t before = 1, step = 1;
    for (int d = last; d >= 0; d--) {
        s->steps[d] = step;
        step *= s->data.dim[d];
        before *= d < s->axis ? s->index.dim[d] : 1;
    }
    int64_t count = shape_count(&s->index);
    s->row = s->index.dim[last];
    s->rows = count ? count / s->row : 0;
    s->last_step = s->axis == last ? 0 : 1;
    bool apart = !s->scatters || s->axis == last; /* rows never meet */
    s->rows_per_task = apart ? TASK_ELEMENTS / (s->row + 1) + 1 : s->rows / (before + !before);
    s->tasks = s->rows ? divide_up(s->rows, s->rows_per_task) : 0;
    s->element = dtype_size(q->out[0].dtype);
    s->bytes = (int64_t)desc_bytes(&q->out[0]);
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->adds = strcmp(node_string(q->node, "reduction", "none"), "add") == 0;
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const void *data, *index, *updates;
    void *y;
};

/* Where the row of indices begins in the data: all coordinates but those along the axis and within
 * the row. */
static int64_t base_of(const struct kernel_state *s, int64_t row)
{
    int64_t base = 0;
    for (int d = s->index.rank - 2; d >= 0; d--) {
        base += d == s->axis ? 0 : row % s->index.dim[d] * s->steps[d];
        row /= s->index.dim[d];
    }
    return base;
}

/* The element of the data that index k names, the j-th of a row that begins at `base`; NONE: none.
 */
static inline int64_t place_of(const struct job *job, int64_t base, int64_t k, int64_t j)
{
    const struct kernel_state *s = job->state;
    int64_t at = s->wide ? ((const int64_t *)job->index)[k] : ((const int32_t *)job->index)[k];
    int64_t size = s->data.dim[s->axis];
    at += at < 0 ? size : 0;
    return at < 0 || at >= size ? NONE : base + at * s->steps[s->axis] + j * s->last_step;
}

static void gather_row(const struct job *job, int64_t row)
{
    const struct kernel_state *s = job->state;
    int64_t base = base_of(s, row);
    for (int64_t j = 0, k = row * s->row; j < s->row; j++, k++) {
        int64_t at = place_of(job, base, k, j);
        if (s->element == 4)
            ((uint32_t *)job->y)[k] = at == NONE ? 0 : ((const uint32_t *)job->data)[at];
        else
            ((uint64_t *)job->y)[k] = at == NONE ? 0 : ((const uint64_t *)job->data)[at];
    }
}

static void scatter_row(const struct job *job, int64_t row)
{
    const struct kernel_state *s = job->state;
    int64_t base = base_of(s, row);
    for (int64_t j = 0, k = row * s->row; j < s->row; j++, k++) {
        int64_t at = place_of(job, base, k, j);
        if (at == NONE)
            continue;
        if (s->adds)
            ((float *)job->y)[at] += ((const float *)job->updates)[k];
        else if (s->element == 4)
            ((uint32_t *)job->y)[at] = ((const uint32_t *)job->updates)[k];
        else
            ((uint64_t *)job->y)[at] = ((const uint64_t *)job->updates)[k];
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t row = task * s->rows_per_task, end = row + s->rows_per_task;
    (void)thread;
    for (end = smaller(end, s->rows); row < end; row++) {
        if (s->scatters)
            scatter_row(job, row);
        else
            gather_row(job, row);
    }
}

static void copy_block(void *context, int64_t block, int thread)
{
    const struct job *job = context;
    int64_t first = block * COPY_BYTES, left = job->state->bytes - first;
    (void)thread;
    memcpy((char *)job->y + first, (const char *)job->data + first,
           (size_t)(left < COPY_BYTES ? left : COPY_BYTES));
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s,
                      .data = args->in[0],
                      .index = args->in[1],
                      .updates = s->scatters ? args->in[2] : NULL,
                      .y = args->out[0]};
    if (s->scatters)
        pool_run(args->pool, divide_up(s->bytes, COPY_BYTES), copy_block, &job);
    pool_run(args->pool, s->tasks, run_task, &job);
}

REGISTER_KERNEL(elements_rows) = {
    NATIVE(elements_rows),
    .ops = OPS("GatherElements", "ScatterElements"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
