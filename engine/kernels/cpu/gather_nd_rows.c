/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherND of plain memory: a run of the data (everything after the axes that a row of the indices
 * goes along) per row. An index outside gives a run of zeros; the reference reports it as an error.
 */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/index_rows.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_BYTES = 32 << 10, ROW_BYTES = 16 /* what finding a row costs, as bytes of a copy */ };

struct kernel_state {
    struct index_rows index;
    int64_t rows;             /* 0 where runs are empty */
    int64_t per_batch, batch; /* rows and runs of one */
    int64_t run, pitch;       /* bytes of a run, and from one to the next in the result */
    int64_t rows_per_tile;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape, *index = &q->in[1].shape;
    int64_t size = (int64_t)dtype_size(q->in[0].dtype);
    int batches = (int)node_int(q->node, "batch_dims", 0);
    TRY(index_rows_plan(q, batches, &s->index, why));
    int end = batches + s->index.depth;
    TRY(row_pitch(&q->out[0], x->rank - end, &s->pitch, why));
    s->pitch *= size;
    s->run = shape_span(x, end, x->rank) * size;
    s->rows = s->run ? s->index.rows : 0;
    s->per_batch = shape_span(index, batches, index->rank - 1);
    s->batch = shape_span(x, batches, end);
    s->rows_per_tile = rows_of_tile(s->rows, s->run + ROW_BYTES, TILE_BYTES, q->threads);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *data;
    const void *index;
    char *y;
};

/* Inlined once per size of single elements, so that the copy is a move. */
SIMD_INLINE void copy_rows(const struct job *given, int64_t row, int64_t end, int64_t bytes)
{
    const struct job job = *given;
    const struct kernel_state s = *job.state;
    bool one = s.per_batch == s.rows;
    for (; row < end; row++) {
        int64_t at = index_rows_at(&s.index, job.index, row);
        int64_t run = one ? at : row / s.per_batch * s.batch + at;
        if (at == NONE)
            memset(job.y + row * s.pitch, 0, (size_t)bytes);
        else
            copy_run(job.y + row * s.pitch, job.data + run * bytes, bytes);
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, end = smaller(first + s->rows_per_tile, s->rows);
    (void)thread;
    if (s->run == 4)
        copy_rows(job, first, end, 4);
    else if (s->run == 8)
        copy_rows(job, first, end, 8);
    else
        copy_rows(job, first, end, s->run);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[1], args->out[0]};
    pool_run(args->pool, divide_up(s->rows, s->rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(gather_nd_rows) = {
    NATIVE(gather_nd_rows), .ops = OPS("GatherND"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .launch = launch,
};
