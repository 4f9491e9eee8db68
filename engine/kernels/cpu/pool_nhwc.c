/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AveragePool on channels-last images: vectors over channels, four at a time, and the
 * window's taps inside, so that each output is written once. Taps in the padding are cut off the
 * loops, not tested.
 */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y;
    struct window w; /* rank 3 */
    int64_t images;
    int64_t channels;
    bool average, count_pads;
    const struct pool_span *columns; /* of each output column */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (!query_all_dtype(q, DTYPE_F32) || q->out_count != 1)
        return UNSUPPORTED(why, "only f32, without indices");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    struct window window;
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    s->images = q->in[0].shape.dim[0];
    s->channels = q->in[0].shape.dim[1];
    s->average = strcmp(q->node->op->name, "AveragePool") == 0;
    s->count_pads = node_int(q->node, "count_include_pad", 0) != 0;
    return STATUS_OK;
}

/* Taking care of NaN with each tap takes three operations in a row instead of one, so the largest
 * is found without, and beside it the sum of all taps: only where that is NaN (because of NaN, or
 * of infinities of both signs) is the window looked at again, with care. */
enum how { AVERAGE, LARGEST, LARGEST_OR_NAN };

SIMD_INLINE void join(vf *sum, vf *most, vf x, enum how how)
{
    if (how == LARGEST_OR_NAN) {
        *most = vf_select(vf_is_nan(*most), *most, vf_max(*most, x));
        return;
    }
    *sum = vf_add(*sum, x);
    if (how == LARGEST)
        *most = vf_max(*most, x);
}

/* Vector v of `count` at a tap; the last one masked. */
SIMD_INLINE vf load_tap(const float *tap, int v, int count, vm last)
{
    return v < count - 1 ? vf_load(tap + v * VL) : vf_load_m(tap + v * VL, last);
}

/* `count` vectors of channels (a constant) from x (of tap 0, 0, 0) to y; the last one masked.
 * Whether LARGEST may have passed over a NaN. */
SIMD_INLINE bool pool_taps(const struct kernel_state *job, const struct pool_span *const s[3],
                           const float *x, float *y, int count, vm last, float factor, enum how how)
{
    const struct window *w = &job->w;
    int64_t column = w->dilation[2] * job->channels, columns = s[2]->last - s[2]->first;
    int64_t row = w->dilation[1] * w->in[2] * job->channels;
    int64_t slice = w->dilation[0] * w->in[1] * w->in[2] * job->channels;
    vf sum[4], most[4];
    for (int v = 0; v < count; v++) {
        sum[v] = vf_zero();
        most[v] = vf_set1(-INFINITY);
    }
    for (int64_t a = s[0]->first; a < s[0]->last; a++)
        for (int64_t b = s[1]->first; b < s[1]->last; b++) {
            const float *tap = x + a * slice + b * row + s[2]->first * column;
            for (int64_t c = 0; c < columns; c++, tap += column)
                for (int v = 0; v < count; v++)
                    join(&sum[v], &most[v], load_tap(tap, v, count, last), how);
        }
    vf all = vf_zero();
    for (int v = 0; v < count; v++) {
        vf value = how == AVERAGE ? vf_mul(sum[v], vf_set1(factor)) : most[v];
        all = vf_add(all, sum[v]);
        if (v < count - 1)
            vf_store(y + v * VL, value);
        else
            vf_store_m(y + v * VL, last, value);
    }
    return how == LARGEST && vm_bits(vf_is_nan(all)) != 0;
}

/* Rarely: kept out of the blocks, of which there are many. */
static __attribute__((noinline)) void pool_carefully(const struct kernel_state *job,
                                                     const struct pool_span *const s[3],
                                                     const float *x, float *y, int64_t channels)
{
    for (int64_t c = 0; c < channels; c += VL)
        pool_taps(job, s, x + c, y + c, 1, vm_first(channels - c), 1, LARGEST_OR_NAN);
}

SIMD_INLINE void pool_block(const struct kernel_state *job, const struct pool_span *const s[3],
                            const float *x, float *y, int count, int64_t channels, float factor,
                            bool average)
{
    vm last = vm_first(channels - (count - 1) * VL);
    if (pool_taps(job, s, x, y, count, last, factor, average ? AVERAGE : LARGEST))
        pool_carefully(job, s, x, y, channels);
}

SIMD_INLINE void pool_position(const struct kernel_state *job, const struct pool_span *const s[3],
                               const float *x, float *y, bool average)
{
    int64_t c = 0, n = job->channels, counted = 1;
    for (int d = 0; average && d < 3; d++)
        counted *= job->count_pads ? s[d]->padded : s[d]->last - s[d]->first;
    float factor = average ? 1.0f / (float)counted : 1;
    for (; c + 4 * VL < n; c += 4 * VL)
        pool_block(job, s, x + c, y + c, 4, 4 * VL, factor, average);
    if (c + 3 * VL < n)
        pool_block(job, s, x + c, y + c, 4, n - c, factor, average);
    else if (c + 2 * VL < n)
        pool_block(job, s, x + c, y + c, 3, n - c, factor, average);
    else if (c + VL < n)
        pool_block(job, s, x + c, y + c, 2, n - c, factor, average);
    else
        pool_block(job, s, x + c, y + c, 1, n - c, factor, average);
}

/* One row of output positions. */
static void run_row(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    const struct window *w = &job->w;
    struct pool_row row = pool_row_of(w, tile);
    const struct pool_span *s[3] = {&row.slices, &row.rows, job->columns};
    float *y = job->y + tile * w->out[2] * job->channels;
    for (int64_t o = 0; o < w->out[2]; o++, s[2]++, y += job->channels) {
        const float *x = job->x + (row.line * w->in[2] + s[2]->at) * job->channels;
        if (job->average)
            pool_position(job, s, x, y, true);
        else
            pool_position(job, s, x, y, false);
    }
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->w.out[2] * sizeof(struct pool_span);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    struct pool_span *columns = args->workspace;
    job.x = args->in[0];
    job.y = args->out[0];
    job.columns = columns;
    for (int64_t o = 0; o < job.w.out[2]; o++)
        columns[o] = pool_span_of(&job.w, 2, o);
    pool_run(args->pool, job.images * job.w.out[0] * job.w.out[1], run_row, &job);
}

REGISTER_KERNEL(pool_nhwc) = {
    NATIVE(pool_nhwc),
    .ops = OPS("MaxPool", "AveragePool"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
