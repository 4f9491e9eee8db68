/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of MaxPool and AveragePool on channels-last images. A task is a band of rows of dx:
 * every window that reaches into it is visited in order, a vector of channels at a time, and adds
 * to those of its taps that lie in the band. Windows across two bands are visited by both, so no
 * sum depends on how many threads there are. Which tap was the largest is searched anew: that
 * costs less than indices would, which had to be stored and read.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd.h"

enum { TASKS_PER_THREAD = 4 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x, *dy;
    float *dx;
    struct window w; /* rank 3 */
    int64_t images, channels;
    int64_t band, bands; /* rows of a band, bands of an image */
    bool average, count_pads;
    const struct pool_span *columns; /* of each output column */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_nhwc(&q->in[k]))
            return UNSUPPORTED(why, "only channels-last");
    if (!desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    struct window window;
    TRY(window_from_node(q->node, &q->out[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    s->images = q->out[0].shape.dim[0];
    s->channels = q->out[0].shape.dim[1];
    s->average = q->in_count == 1;
    s->count_pads = node_int(q->node, "count_include_pad", 0) != 0;
    int64_t wanted = (int64_t)q->threads * TASKS_PER_THREAD, height = s->w.in[1];
    int64_t bands = s->images > 0 ? divide_up(wanted, s->images) : 1;
    int64_t least = 2 * ((s->w.kernel[1] - 1) * s->w.dilation[1] + 1);
    s->band = divide_up(height, bands);
    s->band = larger(s->band, least);
    s->bands = divide_up(height, s->band);
    return STATUS_OK;
}

/* Taps of one window: those inside the input, and those of its rows that lie in the band. */
struct taps {
    const struct pool_span *s[3];
    int64_t first_row, last_row;
    int64_t slice, row, column; /* floats between neighbours */
    int64_t at;                 /* tap 0, 0, 0 in an image */
};

/* Adds dy to the first of the largest elements, to the last NaN if there is one. */
SIMD_INLINE void add_to_largest(const struct taps *t, const float *x, vf dy, float *dx, vm lanes)
{
    vf best = vf_zero(), which = vf_zero();
    float tap = 0;
    for (int64_t a = t->s[0]->first; a < t->s[0]->last; a++)
        for (int64_t b = t->s[1]->first; b < t->s[1]->last; b++)
            for (int64_t c = t->s[2]->first; c < t->s[2]->last; c++, tap += 1) {
                vf value = vf_load_m(x + a * t->slice + b * t->row + c * t->column, lanes);
                vm more = vf_lt(best, value), nan = vf_is_nan(value);
                vf place = vf_set1(tap);
                best = tap == 0 ? value : vf_select(nan, value, vf_select(more, value, best));
                which = vf_select(nan, place, vf_select(more, place, which));
            }
    tap = 0;
    for (int64_t a = t->s[0]->first; a < t->s[0]->last; a++)
        for (int64_t b = t->s[1]->first; b < t->s[1]->last; b++)
            for (int64_t c = t->s[2]->first; c < t->s[2]->last; c++, tap += 1) {
                if (b < t->first_row || b >= t->last_row)
                    continue;
                float *to = dx + a * t->slice + b * t->row + c * t->column;
                vf part = vf_select(vf_eq(which, vf_set1(tap)), dy, vf_zero());
                vf_store_m(to, lanes, vf_add(vf_load_m(to, lanes), part));
            }
}

SIMD_INLINE void add_to_all(const struct taps *t, vf dy, float *dx, vm lanes)
{
    for (int64_t a = t->s[0]->first; a < t->s[0]->last; a++)
        for (int64_t b = t->first_row; b < t->last_row; b++)
            for (int64_t c = t->s[2]->first; c < t->s[2]->last; c++) {
                float *to = dx + a * t->slice + b * t->row + c * t->column;
                vf_store_m(to, lanes, vf_add(vf_load_m(to, lanes), dy));
            }
}

static void visit(const struct kernel_state *job, const struct taps *t, int64_t image,
                  const float *dy)
{
    int64_t n = job->channels, counted = 1, at = image + t->at;
    for (int d = 0; job->average && d < 3; d++)
        counted *= job->count_pads ? t->s[d]->padded : t->s[d]->last - t->s[d]->first;
    float factor = job->average ? 1.0f / (float)counted : 1;
    for (int64_t c = 0; c < n; c += VL) {
        vm lanes = vm_first(n - c);
        vf part = vf_mul(vf_load_m(dy + c, lanes), vf_set1(factor));
        if (job->average)
            add_to_all(t, part, job->dx + at + c, lanes);
        else
            add_to_largest(t, job->x + at + c, part, job->dx + at + c, lanes);
    }
}

/* A row of windows that reaches into rows [first, last) of dx. */
static void visit_row(const struct kernel_state *job, int64_t image, int64_t d, int64_t h,
                      int64_t first, int64_t last)
{
    const struct window *w = &job->w;
    struct pool_span slices = pool_span_of(w, 0, d), rows = pool_span_of(w, 1, h);
    struct taps t = {.s = {&slices, &rows, job->columns},
                     .first_row = rows.first,
                     .last_row = rows.last,
                     .slice = w->dilation[0] * w->in[1] * w->in[2] * job->channels,
                     .row = w->dilation[1] * w->in[2] * job->channels,
                     .column = w->dilation[2] * job->channels};
    while (t.first_row < t.last_row && rows.at + t.first_row * w->dilation[1] < first)
        t.first_row++;
    while (t.last_row > t.first_row && rows.at + (t.last_row - 1) * w->dilation[1] >= last)
        t.last_row--;
    if (t.first_row == t.last_row)
        return;
    int64_t line = ((image * w->out[0] + d) * w->out[1] + h) * w->out[2];
    for (int64_t o = 0; o < w->out[2]; o++, t.s[2]++) {
        t.at = ((slices.at * w->in[1] + rows.at) * w->in[2] + t.s[2]->at) * job->channels;
        visit(job, &t, image * window_in_count(w) * job->channels,
              job->dy + (line + o) * job->channels);
    }
}

static void run_band(void *context, int64_t task, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    const struct window *w = &job->w;
    int64_t image = task / job->bands, first = task % job->bands * job->band;
    int64_t last = first + job->band < w->in[1] ? first + job->band : w->in[1];
    for (int64_t z = 0; z < w->in[0]; z++) {
        int64_t line = (image * w->in[0] + z) * w->in[1] + first;
        memset(job->dx + line * w->in[2] * job->channels, 0,
               (size_t)((last - first) * w->in[2] * job->channels) * sizeof(float));
    }
    int64_t reach = (w->kernel[1] - 1) * w->dilation[1];
    int64_t before = first + w->pad_begin[1] - reach; /* windows that begin earlier end earlier */
    int64_t h0 = before > 0 ? before / w->stride[1] : 0;
    int64_t h1 = (last - 1 + w->pad_begin[1]) / w->stride[1] + 1;
    h1 = h1 < w->out[1] ? h1 : w->out[1];
    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = h0; h < h1; h++)
            visit_row(job, image, d, h, first, last);
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
    job.dy = args->in[job.average ? 0 : 1];
    job.dx = args->out[0];
    job.columns = columns;
    for (int64_t o = 0; o < job.w.out[2]; o++)
        columns[o] = pool_span_of(&job.w, 2, o);
    pool_run(args->pool, job.images * job.bands, run_band, &job);
}

REGISTER_KERNEL(pool_gradient_nhwc) = {
    NATIVE(pool_gradient_nhwc),
    .ops = OPS("MaxPoolGradient", "AveragePoolGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
