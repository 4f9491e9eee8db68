/* SPDX-License-Identifier: Apache-2.0
 *
 * ReverseSequence of any element type: copies of runs, which are all that lies behind the later of
 * the two axes. A length outside is brought to the nearest that there is; the reference reports it
 * as an error. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_BYTES = 32 << 10, RUN_BYTES = 128 /* what finding a run costs, as bytes of a copy */ };

/* An axis: its size, and how many runs lie from one of its places to the next. */
struct run_axis {
    int64_t size, step;
};

struct kernel_state {
    struct run_axis time, batch;
    int64_t runs;       /* 0 where they are empty */
    int64_t run, pitch; /* bytes: of one, and from one to the next in the result */
    int64_t runs_per_tile;
    bool wide; /* lengths of i64 */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape;
    int64_t size = (int64_t)dtype_size(q->in[0].dtype);
    int time = shape_axis(x, node_int(q->node, "time_axis", 0));
    int batch = shape_axis(x, node_int(q->node, "batch_axis", 1));
    int inner = (time > batch ? time : batch) + 1;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "lengths of type %s", dtype_name(q->in[1].dtype));
    for (int k = 0; k < 2; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    TRY(row_pitch(&q->out[0], x->rank - inner, &s->pitch, why));
    s->pitch *= size;
    s->run = shape_span(x, inner, x->rank) * size;
    s->runs = s->run ? shape_span(x, 0, inner) : 0;
    s->time = (struct run_axis){x->dim[time], shape_span(x, time + 1, inner)};
    s->batch = (struct run_axis){x->dim[batch], shape_span(x, batch + 1, inner)};
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->runs_per_tile = rows_of_tile(s->runs, s->run + RUN_BYTES, TILE_BYTES, q->threads);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *x;
    const void *lengths;
    char *y;
};

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t k = tile * s->runs_per_tile, end = smaller(k + s->runs_per_tile, s->runs);
    (void)thread;
    for (; k < end; k++) {
        int64_t t = k / s->time.step % s->time.size, b = k / s->batch.step % s->batch.size;
        int64_t length =
            s->wide ? ((const int64_t *)job->lengths)[b] : ((const int32_t *)job->lengths)[b];
        length = smaller(length, s->time.size);
        int64_t from = t < length ? length - 1 - t : t;
        copy_run(job->y + k * s->pitch, job->x + (k + (from - t) * s->time.step) * s->run, s->run);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[1], args->out[0]};
    pool_run(args->pool, divide_up(s->runs, s->runs_per_tile), run_tile, &job);
}

REGISTER_KERNEL(reverse_sequence_runs) = {
    NATIVE(reverse_sequence_runs),
    .ops = OPS("ReverseSequence"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
