/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/row_loop.h"

#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 16384 };

/* Stands at the start of a row. */
struct place {
    int64_t index[RANK_MAX]; /* of the outer dimensions */
    struct row row;
};

static void place_at(struct place *p, const struct kernel_state *job, int64_t index)
{
    const struct strided *s = &job->space;
    p->row = job->row;
    p->row.count = s->row;
    for (int k = 0; k < job->operands; k++)
        p->row.at[k] += strided_at(s, k, index) * (int64_t)job->size[k];
    for (int d = s->rank - 2; d >= 0; d--) {
        p->index[d] = index % s->dim[d];
        index /= s->dim[d];
    }
}

/* Rows may be short, so the next place is counted, not divided out. */
static void place_next(struct place *p, const struct kernel_state *job)
{
    const struct strided *s = &job->space;
    for (int d = s->rank - 2; d >= 0; d--) {
        bool carries = ++p->index[d] == s->dim[d];
        int64_t steps = carries ? 1 - s->dim[d] : 1;
        for (int k = 0; k < job->operands; k++)
            p->row.at[k] += steps * s->stride[k][d] * (int64_t)job->size[k];
        if (!carries)
            return;
        p->index[d] = 0;
    }
}

static void run_part(const struct kernel_state *job, int64_t index, int64_t column)
{
    struct place p;
    place_at(&p, job, index);
    int64_t left = p.row.count - column;
    for (int k = 0; k < job->operands; k++)
        p.row.at[k] += column * p.row.step[k] * (int64_t)job->size[k];
    p.row.count = left < TILE_ELEMENTS ? left : TILE_ELEMENTS;
    job->run(&p.row);
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    if (job->parts > 1) {
        run_part(job, tile / job->parts, tile % job->parts * TILE_ELEMENTS);
        return;
    }
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    struct place p;
    place_at(&p, job, first);
    for (int64_t row = first; row < last && row < job->space.rows; row++) {
        job->run(&p.row);
        place_next(&p, job);
    }
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
