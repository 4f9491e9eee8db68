/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/row_loop.h"

enum { TILE_ELEMENTS = 16384 };

struct job {
    struct strided space;
    struct row row; /* the whole tensors */
    size_t size[ROW_OPERANDS];
    int operands;
    int64_t rows_per_tile, parts; /* parts: tiles per row when rows are long */
    row_fn *run;
};

enum status row_loop_supports(const struct kernel_query *q, struct error *why)
{
    if (q->in_count >= ROW_OPERANDS || q->out_count != 1 || q->node->post_count)
        return UNSUPPORTED(why, "at most 3 inputs and no fused epilogue");
    if (!desc_is_dense(&q->out[0]))
        return UNSUPPORTED(why, "the output has gaps");
    return STATUS_OK;
}

static void run_row(const struct job *job, int64_t index, int64_t column, int64_t count)
{
    struct row row = job->row;
    row.count = count;
    for (int k = 0; k < job->operands; k++) {
        int64_t at = strided_at(&job->space, k, index) + column * row.step[k];
        row.at[k] += at * (int64_t)job->size[k];
    }
    job->run(&row);
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct strided *s = &job->space;
    if (job->parts > 1) {
        int64_t column = tile % job->parts * TILE_ELEMENTS, left = s->row - column;
        run_row(job, tile / job->parts, column, left < TILE_ELEMENTS ? left : TILE_ELEMENTS);
        return;
    }
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    for (int64_t row = first; row < last && row < s->rows; row++)
        run_row(job, row, 0, s->row);
}

void row_loop_run(const struct kernel_query *q, const struct kernel_args *args, row_fn *run)
{
    const struct desc *descs[ROW_OPERANDS] = {&q->out[0]};
    struct job job = {.operands = q->in_count + 1, .run = run};
    job.row.at[0] = args->out[0];
    job.size[0] = dtype_size(q->out[0].dtype);
    for (int k = 0; k < q->in_count; k++) {
        descs[k + 1] = query_in(q, k);
        job.row.at[k + 1] = (char *)(uintptr_t)args->in[k]; /* read only, whatever the type says */
        job.size[k + 1] = dtype_size(q->in[k].dtype);
    }
    strided_init(&job.space, descs, job.operands);
    const struct strided *s = &job.space;
    for (int k = 0; k < job.operands; k++)
        job.row.step[k] = s->stride[k][s->rank - 1];
    if (s->row == 0)
        return;
    job.parts = (s->row + TILE_ELEMENTS - 1) / TILE_ELEMENTS;
    job.rows_per_tile = s->row < TILE_ELEMENTS ? TILE_ELEMENTS / s->row : 1;
    int64_t tiles =
        job.parts > 1 ? s->rows * job.parts : (s->rows + job.rows_per_tile - 1) / job.rows_per_tile;
    pool_run(args->pool, tiles, run_tile, &job);
}
