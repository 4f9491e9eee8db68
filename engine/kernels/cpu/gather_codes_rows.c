/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherBlockQuantized: rows of a table in 4 or 8 bits as floats. An index outside the table gives
 * a row of zeros; the reference reports it as an error. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/block_codes_read.h"

enum { CODES, INDICES, SCALES, ZEROS, ROWS_PER_TASK = 8 };

struct kernel_state {
    struct block_codes codes;
    int64_t count;
    bool wide, bf16; /* indices of 64 bits; floats of 16 */
    bool has_zeros;
};

struct job {
    const struct kernel_state *state;
    struct block_code_arrays in;
    const void *indices;
    char *y;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    enum dtype floats = q->in[SCALES].dtype, index = q->in[INDICES].dtype;
    s->bf16 = floats == DTYPE_BF16;
    s->wide = index == DTYPE_I64;
    s->has_zeros = query_in(q, ZEROS) != NULL;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (floats != DTYPE_F32 && floats != DTYPE_BF16)
        return UNSUPPORTED(why, "scales of type %s", dtype_name(floats));
    if (index != DTYPE_I32 && index != DTYPE_I64)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(index));
    for (int k = 0; k < q->in_count; k++)
        if (query_in(q, k) && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the result is not plain");
    const struct shape *y = &q->out[0].shape;
    s->count = shape_count(&q->in[INDICES].shape);
    return block_codes_from(q->node, q->in[CODES].shape.dim[0], y->dim[y->rank - 1], &s->codes,
                            why);
}

static void gather_row(const struct job *job, int64_t i)
{
    const struct kernel_state *s = job->state;
    int64_t row = s->wide ? ((const int64_t *)job->indices)[i] : ((const int32_t *)job->indices)[i];
    size_t bytes = (size_t)s->codes.k * (s->bf16 ? sizeof(uint16_t) : sizeof(float));
    char *to = job->y + (size_t)i * bytes;
    row += row < 0 ? s->codes.rows : 0;
    if (row < 0 || row >= s->codes.rows)
        memset(to, 0, bytes);
    else if (s->bf16)
        row_of_codes_alike(&s->codes, &job->in, row, to, true);
    else
        row_of_codes_alike(&s->codes, &job->in, row, to, false);
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    int64_t first = task * ROWS_PER_TASK;
    (void)thread;
    for (int64_t i = first; i < smaller(first + ROWS_PER_TASK, job->state->count); i++)
        gather_row(job, i);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s,
                      .in = {args->in[CODES], NULL, args->in[SCALES]},
                      .indices = args->in[INDICES],
                      .y = args->out[0]};
    job.in.zeros = s->has_zeros ? args->in[ZEROS] : NULL;
    pool_run(args->pool, divide_up(s->count, ROWS_PER_TASK), run_task, &job);
}

REGISTER_KERNEL(gather_codes_rows) = {
    NATIVE(gather_codes_rows),
    .ops = OPS("GatherBlockQuantized"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
