/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AveragePool on channels-last images: vectors over channels, four at a time, and the
 * window's taps inside, so that each output is written once. Taps in the padding are cut off the
 * loops, not tested. bf16 is pooled as f32 and rounded once, which changes no largest one that is a
 * normal number.
 */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd_floats.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x;
    void *y;
    struct window w; /* rank 3 */
    int64_t images;
    int64_t channels;
    bool average, count_pads, bf16;
    const struct pool_span *columns; /* of each output column */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->bf16 = query_all_dtype(q, DTYPE_BF16);
    if ((!s->bf16 && !query_all_dtype(q, DTYPE_F32)) || q->out_count != 1)
        return UNSUPPORTED(why, "only f32 or bf16, without indices");
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
SIMD_INLINE vf load_tap(const void *tap, int v, int count, vm last, bool bf16)
{
    return v < count - 1 ? vf_read(tap, v * VL, bf16) : vf_read_m(tap, v * VL, last, bf16);
}

/* Of one position: where tap 0, 0, 0 is and where the result goes; `factor` of a mean. */
struct place {
    const void *x;
    void *y;
    int64_t channels; /* from here on */
    float factor;
};

SIMD_INLINE struct place place_after(struct place at, int64_t channels, bool bf16)
{
    int64_t bytes = channels * (bf16 ? 2 : 4);
    return (struct place){(const char *)at.x + bytes, (char *)at.y + bytes, at.channels - channels,
                          at.factor};
}

/* `count` vectors of channels (a constant); the last one masked. Whether LARGEST may have passed
 * over a NaN. */
SIMD_INLINE bool pool_taps(const struct kernel_state *job, const struct pool_span *const s[3],
                           struct place at, int count, vm last, enum how how, bool bf16)
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
            const void *tap = float_at(at.x, a * slice + b * row + s[2]->first * column, bf16);
            for (int64_t c = 0; c < columns; c++, tap = float_at(tap, column, bf16))
                for (int v = 0; v < count; v++)
                    join(&sum[v], &most[v], load_tap(tap, v, count, last, bf16), how);
        }
    vf all = vf_zero();
    for (int v = 0; v < count; v++) {
        vf value = how == AVERAGE ? vf_mul(sum[v], vf_set1(at.factor)) : most[v];
        all = vf_add(all, sum[v]);
        if (v < count - 1)
            vf_write(at.y, v * VL, value, bf16);
        else
            vf_write_m(at.y, v * VL, last, value, bf16);
    }
    return how == LARGEST && vm_bits(vf_is_nan(all)) != 0;
}

/* Rarely: kept out of the blocks, of which there are many. */
static __attribute__((noinline)) void pool_carefully(const struct kernel_state *job,
                                                     const struct pool_span *const s[3],
                                                     struct place at, int64_t channels)
{
    bool bf16 = job->bf16;
    for (; channels > 0; channels -= VL, at = place_after(at, VL, bf16))
        pool_taps(job, s, at, 1, vm_first(channels), LARGEST_OR_NAN, bf16);
}

SIMD_INLINE void pool_block(const struct kernel_state *job, const struct pool_span *const s[3],
                            struct place at, int count, bool average, bool bf16)
{
    int64_t channels = at.channels < 4 * VL ? at.channels : 4 * VL;
    vm last = vm_first(channels - (count - 1) * VL);
    if (pool_taps(job, s, at, count, last, average ? AVERAGE : LARGEST, bf16))
        pool_carefully(job, s, at, channels);
}

SIMD_INLINE void pool_position(const struct kernel_state *job, const struct pool_span *const s[3],
                               struct place at, bool average, bool bf16)
{
    int64_t counted = 1;
    for (int d = 0; average && d < 3; d++)
        counted *= job->count_pads ? s[d]->padded : s[d]->last - s[d]->first;
    at.channels = job->channels;
    at.factor = average ? 1.0f / (float)counted : 1;
    for (; at.channels > 4 * VL; at = place_after(at, 4 * VL, bf16))
        pool_block(job, s, at, 4, average, bf16);
    if (at.channels > 3 * VL)
        pool_block(job, s, at, 4, average, bf16);
    else if (at.channels > 2 * VL)
        pool_block(job, s, at, 3, average, bf16);
    else if (at.channels > VL)
        pool_block(job, s, at, 2, average, bf16);
    else
        pool_block(job, s, at, 1, average, bf16);
}

/* One row of output positions. */
SIMD_INLINE void pool_row(const struct kernel_state *job, int64_t tile, bool average, bool bf16)
{
    const struct window *w = &job->w;
    struct pool_row row = pool_row_of(w, tile);
    const struct pool_span *s[3] = {&row.slices, &row.rows, job->columns};
    for (int64_t o = 0; o < w->out[2]; o++, s[2]++) {
        int64_t from = (row.line * w->in[2] + s[2]->at) * job->channels;
        int64_t to = (tile * w->out[2] + o) * job->channels;
        struct place at = {.x = float_at(job->x, from, bf16), .y = out_at(job->y, to, bf16)};
        pool_position(job, s, at, average, bf16);
    }
}

static void run_row(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    if (job->average && job->bf16)
        pool_row(job, tile, true, true);
    else if (job->average)
        pool_row(job, tile, true, false);
    else if (job->bf16)
        pool_row(job, tile, false, true);
    else
        pool_row(job, tile, false, false);
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
