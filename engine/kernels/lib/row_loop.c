/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/row_loop.h"

#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 16384 };

static void run_row(const struct kernel_state *job, int64_t index, int64_t column, int64_t count)
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
    const struct kernel_state *job = context;
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

enum status row_loop_plan(const struct kernel_query *q, row_fn *run, struct kernel_state *state,
                          struct error *why)
{
    const struct desc *descs[ROW_OPERANDS] = {&q->out[0]};
    if (q->in_count >= ROW_OPERANDS || q->out_count != 1 || q->node->post_count)
        return UNSUPPORTED(why, "at most 3 inputs and no fused epilogue");
    if (!desc_is_dense(&q->out[0]))
        return UNSUPPORTED(why, "the output has gaps");
    state->operands = q->in_count + 1;
    state->run = run;
    state->size[0] = dtype_size(q->out[0].dtype);
    for (int k = 0; k < q->in_count; k++) {
        descs[k + 1] = query_in(q, k);
        state->size[k + 1] = dtype_size(q->in[k].dtype);
    }
    struct strided *s = &state->space;
    strided_init(s, descs, state->operands);
    for (int k = 0; k < state->operands; k++)
        state->row.step[k] = s->stride[k][s->rank - 1];
    if (s->row == 0)
        return STATUS_OK;
    state->parts = divide_up(s->row, TILE_ELEMENTS);
    state->rows_per_tile = rows_of_tile(s->rows, s->row, TILE_ELEMENTS, q->threads);
    state->tiles =
        state->parts > 1 ? s->rows * state->parts : divide_up(s->rows, state->rows_per_tile);
    return STATUS_OK;
}

void row_loop_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct kernel_state job = *state;
    job.row.at[0] = args->out[0];
    for (int k = 1; k < job.operands; k++)
        job.row.at[k] = (char *)(uintptr_t)args->in[k - 1]; /* read only, whatever the type says */
    pool_run(args->pool, job.tiles, run_tile, &job);
}
