/* SPDX-License-Identifier: Apache-2.0
 *
 * ExpertCombine: first where each place's row lies, then tokens by all threads, a part of their
 * columns at a time: vectors of the rows times the places' weights, summed up in f32 in the order
 * of the places. */
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/tiles.h"

enum { ROWS, ORDER, WEIGHTS, TILE_ELEMENTS = 8 << 10, COLUMNS = 16 * VL };

struct kernel_state {
    int64_t tokens, chosen, width, parts, tile; /* parts: of a token's columns, so many a tile */
    bool bf16;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->bf16 = q->in[ROWS].dtype == DTYPE_BF16;
    if ((!s->bf16 && q->in[ROWS].dtype != DTYPE_F32) || q->in[WEIGHTS].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "rows of %s, weights of %s", dtype_name(q->in[ROWS].dtype),
                           dtype_name(q->in[WEIGHTS].dtype));
    if (q->node->post_count || !descs_are_plain(q->in, q->in_count) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "an input or output is not plain, or there is an epilogue");
    s->tokens = q->out[0].shape.dim[0];
    s->width = q->out[0].shape.dim[1];
    s->chosen = q->in[WEIGHTS].shape.dim[1];
    s->parts = divide_up(s->width, COLUMNS);
    s->tile = rows_of_tile(s->tokens * s->parts, COLUMNS * s->chosen, TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->tokens * s->chosen) * sizeof(int64_t);
}

struct job {
    const struct kernel_state *state;
    const void *rows;
    const float *weights;
    const int64_t *row_of; /* per place */
    void *y;
};

SIMD_INLINE void combine(const struct job *job, int64_t token, int64_t column, int64_t end,
                         bool bf16)
{
    const struct kernel_state *s = job->state;
    const int64_t *row_of = job->row_of + token * s->chosen;
    const float *weights = job->weights + token * s->chosen;
    for (; column < end; column += VL) {
        vm lanes = vm_first(end - column);
        vf sum = vf_zero();
        for (int64_t j = 0; j < s->chosen; j++) {
            vf x = vf_read_m(job->rows, row_of[j] * s->width + column, lanes, bf16);
            sum = vf_fma(vf_set1(weights[j]), x, sum);
        }
        vf_write_m(job->y, token * s->width + column, lanes, sum, bf16);
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t end = smaller((tile + 1) * s->tile, s->tokens * s->parts);
    (void)thread;
    for (int64_t i = tile * s->tile; i < end; i++) {
        int64_t column = i % s->parts * COLUMNS, stop = smaller(column + COLUMNS, s->width);
        if (s->bf16)
            combine(job, i / s->parts, column, stop, true);
        else
            combine(job, i / s->parts, column, stop, false);
    }
}

/* A place that order does not name reads the first row, and what order names beside the places is
 * left out; the reference reports both as errors. */
static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    int64_t *row_of = args->workspace, places = s->tokens * s->chosen;
    const int64_t *order = args->in[ORDER];
    struct job job = {s, args->in[ROWS], args->in[WEIGHTS], row_of, args->out[0]};
    for (int64_t i = 0; i < places; i++)
        row_of[i] = 0;
    for (int64_t i = 0; i < places; i++)
        if (order[i] >= 0 && order[i] < places)
            row_of[order[i]] = i;
    pool_run(args->pool, divide_up(s->tokens * s->parts, s->tile), run_tile, &job);
}

REGISTER_KERNEL(expert_combine_rows) = {
    NATIVE(expert_combine_rows),
    .ops = OPS("ExpertCombine"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
