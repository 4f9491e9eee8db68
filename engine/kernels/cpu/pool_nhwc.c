/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AveragePool on channels-last images: vectors over channels, four at a time, and the
 * window's taps inside, so that each output is written once. Taps in the padding are cut off the
 * loops, not tested.
 */
#include <string.h>

#include "engine/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/op.h"
#include "engine/window.h"

struct job {
    const float *x;
    float *y;
    struct window w; /* rank 3 */
    int64_t channels;
    bool average, count_pads;
};

/* Taps [first, last) of a window that lie inside the input, and inside the padded input. */
struct span {
    int64_t first, last, padded;
    int64_t at; /* input position of tap 0 */
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32) || q->out_count != 1)
        return UNSUPPORTED(why, "only f32, without indices");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    return STATUS_OK;
}

static struct span span_of(const struct window *w, int d, int64_t position)
{
    int64_t at = position * w->stride[d] - w->pad_begin[d], step = w->dilation[d];
    int64_t end = w->in[d] + w->pad_end[d]; /* of the padded input */
    struct span s = {.at = at, .last = w->kernel[d]};
    while (s.first < w->kernel[d] && at + s.first * step < 0)
        s.first++;
    while (s.last > s.first && at + (s.last - 1) * step >= w->in[d])
        s.last--;
    for (int64_t t = 0; t < w->kernel[d]; t++)
        s.padded += at + t * step < end;
    return s;
}

SIMD_INLINE vf join(vf sum, vf x, bool average)
{
    return average ? vf_add(sum, x) : vf_max(sum, x);
}

/* `count` vectors of channels from x (of tap 0, 0, 0) to y; the last one masked. */
SIMD_INLINE void pool_block(const struct job *job, const struct span s[3], const float *x, float *y,
                            int count, vm last, float factor, bool average)
{
    const struct window *w = &job->w;
    int64_t column = w->dilation[2] * job->channels;
    int64_t row = w->dilation[1] * w->in[2] * job->channels;
    int64_t slice = w->dilation[0] * w->in[1] * w->in[2] * job->channels;
    vf sum[4], none = vf_set1(average ? 0.0f : -INFINITY);
    for (int v = 0; v < 4; v++)
        sum[v] = none;
    for (int64_t a = s[0].first; a < s[0].last; a++)
        for (int64_t b = s[1].first; b < s[1].last; b++)
            for (int64_t c = s[2].first; c < s[2].last; c++) {
                const float *tap = x + a * slice + b * row + c * column;
                for (int v = 0; v < count - 1; v++)
                    sum[v] = join(sum[v], vf_load(tap + v * VL), average);
                sum[count - 1] =
                    join(sum[count - 1], vf_load_m(tap + (count - 1) * VL, last), average);
            }
    for (int v = 0; v < count; v++) {
        vf value = average ? vf_mul(sum[v], vf_set1(factor)) : sum[v];
        vf_store_m(y + v * VL, v == count - 1 ? last : vm_first(VL), value);
    }
}

SIMD_INLINE void pool_position(const struct job *job, const struct span s[3], const float *x,
                               float *y, bool average)
{
    int64_t counted = job->count_pads ? s[0].padded * s[1].padded * s[2].padded
                                      : (s[0].last - s[0].first) * (s[1].last - s[1].first) *
                                            (s[2].last - s[2].first);
    float factor = 1.0f / (float)counted;
    int64_t c = 0;
    for (; c + 4 * VL <= job->channels; c += 4 * VL)
        pool_block(job, s, x + c, y + c, 4, vm_first(VL), factor, average);
    for (; c < job->channels; c += VL)
        pool_block(job, s, x + c, y + c, 1, vm_first(job->channels - c), factor, average);
}

/* One row of output positions. */
static void run_row(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct window *w = &job->w;
    int64_t h = tile % w->out[1], d = tile / w->out[1] % w->out[0];
    int64_t image = tile / (w->out[1] * w->out[0]);
    struct span s[3] = {span_of(w, 0, d), span_of(w, 1, h), {0}};
    float *y = job->y + tile * w->out[2] * job->channels;
    int64_t line = (image * w->in[0] + s[0].at) * w->in[1] + s[1].at;
    for (int64_t o = 0; o < w->out[2]; o++, y += job->channels) {
        s[2] = span_of(w, 2, o);
        const float *x = job->x + (line * w->in[2] + s[2].at) * job->channels;
        if (job->average)
            pool_position(job, s, x, y, true);
        else
            pool_position(job, s, x, y, false);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct window window;
    const struct shape *x = &q->in[0].shape;
    if (window_from_node(q->node, x, NULL, &window, NULL) != STATUS_OK)
        return;
    struct job job = {.x = args->in[0],
                      .y = args->out[0],
                      .w = window_to_3d(&window),
                      .channels = x->dim[1],
                      .average = strcmp(q->node->op->name, "AveragePool") == 0,
                      .count_pads = node_int(q->node, "count_include_pad", 0) != 0};
    pool_run(args->pool, x->dim[0] * job.w.out[0] * job.w.out[1], run_row, &job);
}

REGISTER_KERNEL(pool_nhwc) = {
    NATIVE(pool_nhwc),
    .ops = OPS("MaxPool", "AveragePool"),
    .supports = supports,
    .launch = launch,
};
