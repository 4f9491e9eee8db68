/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of the weights of a convolution that sees few channels, as the first of a network does.
 * What a line of the kernel sees of a line of x, taps * channels floats, lies there in one piece:
 * these are the rows of an outer product (engine/kernels/lib/outer.h) whose columns are the
 * channels of dy. Nothing is gathered; x is only turned channels-last where it is not, with zeros
 * at both ends of its lines. Lines of the result are cut into slices, whose sums are added at the
 * end: how depends on the shape alone, so the result is the same on any number of threads. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/outer.h"
#include "engine/kernels/lib/slices.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/lib/window.h"

enum {
    CHANNELS_MAX = 8,
    SLICES = 16,
    LINE_FLOATS = 16,
};

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t images, channels, out_channels;
    bool plain;                  /* x */
    int64_t pixels;              /* of dy in a pass */
    int64_t line;                /* floats of a line of x with its zeros */
    int64_t run;                 /* rows of sums: taps of a line of the kernel times channels */
    int64_t lines, slices, sums; /* of dy; floats of a slice */
};

/* Most pixels of a pass: best guesses first. */
static const int64_t tunings[] = {128, 64, 32};

static enum status fits(const struct kernel_query *q, const struct window *w, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "no fused epilogue, and only plain weights");
    if (!desc_is_plain(&q->in[0]) && !desc_is_nhwc(&q->in[0]))
        return UNSUPPORTED(why, "x is neither plain nor channels-last");
    if (!desc_is_nhwc(&q->in[1]))
        return UNSUPPORTED(why, "dy is not channels-last");
    if (q->in[0].shape.dim[1] > CHANNELS_MAX)
        return UNSUPPORTED(why, "more than %d channels", CHANNELS_MAX);
    if (q->in[1].shape.dim[1] % VL)
        return UNSUPPORTED(why, "channels of dy are no whole vectors");
    if (w->group > 1)
        return UNSUPPORTED(why, "groups");
    if (!window_is_flat(w) || w->dilation[2] != 1)
        return UNSUPPORTED(why, "three dimensions, or dilation along a line");
    if (shape_count(&q->in[0].shape) == 0 || shape_count(&q->in[1].shape) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct window window;
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    TRY(fits(q, &s->w, why));
    const struct window *w = &s->w;
    s->images = q->in[0].shape.dim[0];
    s->channels = q->in[0].shape.dim[1];
    s->out_channels = q->in[1].shape.dim[1];
    s->plain = !desc_is_nhwc(&q->in[0]);
    s->pixels = divide_up(w->out[2], divide_up(w->out[2], tunings[variant]));
    s->line = ((w->out[2] - 1) * w->stride[2] + w->kernel[2]) * s->channels;
    s->run = w->kernel[2] * s->channels;
    s->lines = s->images * w->out[1];
    s->slices = smaller(SLICES, s->lines);
    s->sums = w->kernel[1] * s->run * s->out_channels;
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    int count = 1;
    while (count < (int)ARRAY_COUNT(tunings) && s->w.out[2] > tunings[count])
        count++;
    return count;
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "%lld rows, %lld pixels, %lld slices", (long long)s->run,
             (long long)s->pixels, (long long)s->slices);
}

/* What a launch has in its workspace. */
struct job {
    const struct kernel_state *state;
    const float *from, *dy;
    float *x, *slices, *total;
};

static size_t take(const struct kernel_state *s, struct job *job, char *base)
{
    size_t at = 0;
    job->x = take_floats(base, &at, s->images * s->w.in[1] * s->line);
    job->slices = take_floats(base, &at, s->sums * s->slices);
    job->total = take_floats(base, &at, s->sums);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct job job;
    return take(s, &job, NULL);
}

/* One line of x of all channels, between zeros. */
static void copy_line(void *context, int64_t line, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->w;
    int64_t c = s->channels, height = w->in[1], image = line / height, y = line % height;
    int64_t left = smaller(w->pad_begin[2] * c, s->line);
    int64_t count = smaller(w->in[2] * c, s->line - left);
    float *to = job->x + line * s->line;
    memset(to, 0, (size_t)left * sizeof(float));
    memset(to + left + count, 0, (size_t)(s->line - left - count) * sizeof(float));
    if (!s->plain) {
        memcpy(to + left, job->from + line * w->in[2] * c, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t k = 0; k < c; k++) {
        const float *from = job->from + ((image * c + k) * height + y) * w->in[2];
        for (int64_t p = 0; p < count / c; p++)
            to[left + p * c + k] = from[p];
    }
}

/* What `count` pixels of a line of dy add to the sums of one line of the kernel. x: what the first
 * of them sees there. Meanwhile the next pixels of dy are prefetched, a line of each with every
 * tile. */
static void add_run(const struct kernel_state *s, const float *x, const float *dy, int64_t count,
                    float *sums)
{
    int64_t vectors = s->out_channels / VL, panels = divide_up(vectors, OUTER_VECTORS_MAX);
    int64_t tiles = divide_up(s->run, OUTER_ROWS_MAX);
    struct outer tile = {.a_step = s->w.stride[2] * s->channels,
                         .b_step = s->out_channels,
                         .k = count,
                         .c_row = s->out_channels,
                         .resume = true};
    for (int64_t panel = 0; panel < panels; panel++) {
        int64_t first = vectors * panel / panels, end = vectors * (panel + 1) / panels;
        tile.b = dy + first * VL;
        for (int64_t k = 0; k < tiles; k++) {
            int64_t row = s->run * k / tiles, last = s->run * (k + 1) / tiles;
            bool ahead = k * LINE_FLOATS < (end - first) * VL;
            tile.a = tile.ahead_a = x + row;
            tile.c = sums + row * s->out_channels + first * VL;
            tile.ahead_b = ahead ? tile.b + count * tile.b_step + k * LINE_FLOATS : dy;
            tile.ahead_b_step = ahead ? tile.b_step : 0;
            outer_run(&tile, (int)(last - row), (int)(end - first));
        }
    }
}

static void add_lines(void *context, int64_t slice, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->w;
    float *sums = job->slices + slice * s->sums;
    memset(sums, 0, (size_t)s->sums * sizeof(float));
    int64_t last = s->lines * (slice + 1) / s->slices;
    for (int64_t line = s->lines * slice / s->slices; line < last; line++) {
        int64_t image = line / w->out[1], y = line % w->out[1] * w->stride[1] - w->pad_begin[1];
        for (int64_t at = 0; at < w->out[2]; at += s->pixels) {
            const float *dy = job->dy + (line * w->out[2] + at) * s->out_channels;
            int64_t count = smaller(s->pixels, w->out[2] - at);
            for (int64_t k = 0; k < w->kernel[1]; k++) {
                int64_t seen = y + k * w->dilation[1];
                const float *x = job->x + (image * w->in[1] + seen) * s->line;
                if (seen >= 0 && seen < w->in[1])
                    add_run(s, x + at * w->stride[2] * s->channels, dy, count,
                            sums + k * s->run * s->out_channels);
            }
        }
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .from = args->in[0], .dy = args->in[1]};
    take(s, &job, args->workspace);
    pool_run(args->pool, s->images * s->w.in[1], copy_line, &job);
    pool_run(args->pool, s->slices, add_lines, &job);
    struct slices slices = {job.slices, s->slices, s->sums, job.total, s->sums};
    slices_add(&slices, args->pool);
    float *dw = args->out[0];
    int64_t taps = s->w.kernel[1] * s->w.kernel[2];
    for (int64_t m = 0; m < s->out_channels; m++)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t t = 0; t < taps; t++)
                *dw++ = job.total[(t * s->channels + c) * s->out_channels + m];
}

REGISTER_KERNEL(conv_weight_gradient_stem) = {
    NATIVE(conv_weight_gradient_stem),
    .ops = OPS("ConvWeightGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
