/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of a convolution's weights as sums of outer products, as in conv_weight_gradient.c, but
 * x is read where it lies, whatever the strides and the padding: tiles are given the addresses of
 * what a tap sees of x, pixel by pixel (engine/kernels/lib/outer_pointed.h), those of zeros in the
 * padding. The sums of a block of rows by a block of channels, all taps, stay in the second cache
 * while pixels pass by, `depth` at a time. Where dw is small, pixels are cut into slices, whose
 * sums are added at the end. How it is cut depends on the shape and the variant alone, so the
 * result is the same on any number of threads. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/outer_pointed.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/slices.h"
#include "engine/kernels/lib/weight_blocks.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/lib/window.h"

enum {
    PANEL = POINTED_VECTORS * VL,
    LINE_FLOATS = 16,
};

struct kernel_state {
    struct window w; /* rank 3 */
    struct weight_blocks blocks;
    int64_t images, channels, out_channels, places;
    int64_t dw_floats; /* of the dw of a slice */
    int threads;
};

/* Best guesses first. */
static const struct weight_tuning tunings[] = {
    {96, 128, 16},
    {128, 256, 16},
    {256, 128, 16},
    {64, 128, 64},
};

static enum status fits(const struct kernel_query *q, struct error *why)
{
    const struct shape *x = &q->in[0].shape, *dy = &q->in[1].shape;
    if (VL < 16)
        return UNSUPPORTED(why, "tiles of 12 rows by 2 vectors need 32 registers");
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "no fused epilogue, and only plain weights");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->in[1]))
        return UNSUPPORTED(why, "images are not channels-last");
    if (shape_count(x) == 0 || shape_count(dy) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    struct window window;
    TRY(fits(q, why));
    TRY(window_from_node(q->node, x, NULL, &window, why));
    s->w = window_to_3d(&window);
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->out_channels = q->in[1].shape.dim[1];
    s->places = window_out_count(&s->w);
    s->blocks = (struct weight_blocks){.groups = s->w.group,
                                       .group_in = s->channels / s->w.group,
                                       .group_out = s->out_channels / s->w.group,
                                       .taps = window_taps(&s->w),
                                       .pixels = s->images * s->places};
    if (s->blocks.group_in % VL)
        return UNSUPPORTED(why, "channels of a group are no whole vectors");
    weight_blocks_cut(&s->blocks, &tunings[variant], PANEL, POINTED_ROWS);
    s->dw_floats = s->blocks.slices > 1 ? round_up(shape_count(&q->out[0].shape), VL) : 0;
    s->threads = q->threads;
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    (void)s;
    return ARRAY_COUNT(tunings);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "%lldx%lld depth %lld, %lld slices", (long long)s->blocks.rows,
             (long long)s->blocks.columns, (long long)s->blocks.depth, (long long)s->blocks.slices);
}

/* What a thread needs for a task. */
struct scratch {
    float *sums;                /* [rows][taps][width] */
    float *zeros;               /* as many as a block has channels */
    const float **seen, **next; /* [taps][depth]: what pixels of this and the next pass see */
};

static size_t take_scratch(const struct kernel_state *s, char *base, struct scratch *scratch)
{
    size_t at = 0, pointers = (size_t)(s->blocks.taps * s->blocks.depth) * sizeof(float *);
    scratch->sums = take_floats(base, &at, s->blocks.rows * s->blocks.columns);
    scratch->zeros = take_floats(base, &at, s->blocks.width);
    scratch->seen = take_bytes(base, &at, pointers);
    scratch->next = take_bytes(base, &at, pointers);
    return at;
}

static size_t sliced_bytes(const struct kernel_state *s)
{
    return aligned_bytes((size_t)(s->dw_floats * s->blocks.slices) * sizeof(float));
}

static size_t workspace(const struct kernel_state *s)
{
    struct scratch scratch;
    return sliced_bytes(s) + take_scratch(s, NULL, &scratch) * (size_t)s->threads;
}

struct job {
    const struct kernel_state *state;
    const float *x, *dy;
    float *dw;
    float *sliced; /* dw of each slice; NULL: there is one */
    char *scratch; /* of the threads */
};

struct task {
    const struct job *job;
    struct weight_block block;
    struct scratch mine;
};

static struct task task_at(const struct job *job, int64_t index, int thread)
{
    const struct kernel_state *s = job->state;
    struct task t = {.job = job, .block = weight_block_at(&s->blocks, index)};
    size_t bytes = take_scratch(s, NULL, &t.mine);
    take_scratch(s, job->scratch + (size_t)thread * bytes, &t.mine);
    return t;
}

/* ---- what pixels see ---- */

/* Of a tap, by pixel + 0 to count - 1, which are in one line of the result. */
static void point_line(const struct task *t, int64_t tap, int64_t pixel, int64_t count,
                       const float **to)
{
    const struct kernel_state *s = t->job->state;
    const struct window *w = &s->w;
    int64_t image = pixel / s->places, place = pixel % s->places, at[SPATIAL_MAX];
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        at[d] = place % w->out[d] * w->stride[d] - w->pad_begin[d];
        at[d] += tap % w->kernel[d] * w->dilation[d];
        place /= w->out[d];
        tap /= w->kernel[d];
    }
    bool inside = (uint64_t)at[0] < (uint64_t)w->in[0] && (uint64_t)at[1] < (uint64_t)w->in[1];
    int64_t line = ((image * w->in[0] + at[0]) * w->in[1] + at[1]) * w->in[2];
    const float *x = t->job->x + t->block.group * s->blocks.group_in + t->block.channel;
    for (int64_t k = 0; k < count; k++) {
        int64_t column = at[2] + k * w->stride[2];
        bool seen = inside && (uint64_t)column < (uint64_t)w->in[2];
        to[k] = seen ? x + (line + column) * s->channels : t->mine.zeros;
    }
}

static void point_pixels(const struct task *t, int64_t pixel, int64_t count, const float **to)
{
    const struct kernel_state *s = t->job->state;
    for (int64_t at = 0, line; at < count; at += line) {
        line = smaller(s->w.out[2] - (pixel + at) % s->w.out[2], count - at);
        for (int64_t tap = 0; tap < s->blocks.taps; tap++)
            point_line(t, tap, pixel + at, line, to + tap * s->blocks.depth + at);
    }
}

/* ---- products ---- */

/* All rows of the task, tile by tile, of one panel of a tap's channels. Meanwhile the pixels of the
 * next pass are prefetched: dy by the first panel, x by all. */
static void add_products(const struct task *t, int64_t pixel, int64_t count, int64_t tap,
                         int64_t channel, int vectors)
{
    const struct kernel_state *s = t->job->state;
    int64_t tiles = divide_up(t->block.rows, POINTED_ROWS), next = pixel + count;
    bool more = next + count <= t->block.last;
    const float *dy = t->job->dy + t->block.group * s->blocks.group_out + t->block.row;
    struct outer_pointed tile = {.a_step = s->out_channels,
                                 .b = t->mine.seen + tap * s->blocks.depth,
                                 .b_column = channel,
                                 .k = count,
                                 .c_row = s->blocks.columns,
                                 .resume = pixel > t->block.first};
    for (int64_t k = 0; k < tiles; k++) {
        int64_t row = t->block.rows * k / tiles, end = t->block.rows * (k + 1) / tiles;
        bool ahead_a = more && tap == 0 && channel == 0 && k * LINE_FLOATS < t->block.rows;
        bool ahead_b = more && k * LINE_FLOATS < vectors * VL;
        tile.a = dy + pixel * s->out_channels + row;
        tile.c = t->mine.sums + row * s->blocks.columns + tap * t->block.width + channel;
        tile.ahead_a = ahead_a ? dy + next * s->out_channels + k * LINE_FLOATS : t->mine.zeros;
        tile.ahead_a_step = ahead_a ? s->out_channels : 0;
        tile.ahead_b = (ahead_b ? t->mine.next : t->mine.seen) + tap * s->blocks.depth;
        tile.ahead_b_column = channel + (ahead_b ? k * LINE_FLOATS : 0);
        outer_run_pointed(&tile, (int)(end - row), vectors);
    }
}

static void add_pixels(struct task *t, int64_t pixel, int64_t count)
{
    const struct kernel_state *s = t->job->state;
    int64_t vectors = t->block.width / VL, panels = divide_up(vectors, POINTED_VECTORS);
    int64_t next = pixel + count;
    if (next < t->block.last)
        point_pixels(t, next, smaller(s->blocks.depth, t->block.last - next), t->mine.next);
    for (int64_t tap = 0; tap < s->blocks.taps; tap++)
        for (int64_t k = 0; k < panels; k++) {
            int64_t first = vectors * k / panels, end = vectors * (k + 1) / panels;
            add_products(t, pixel, count, tap, first * VL, (int)(end - first));
        }
    const float **seen = t->mine.seen;
    t->mine.seen = t->mine.next;
    t->mine.next = seen;
}

/* A row of sums [taps][width] becomes [width][taps], in squares where a channel's taps are a vector
 * at most. */
static void write_row(const float *sums, int64_t taps, int64_t width, float *to)
{
    float turned[VL * VL + VL], *at[VL];
    if (taps == 1) {
        memcpy(to, sums, (size_t)width * sizeof(float));
        return;
    }
    for (int64_t c = 0; taps <= VL && c < width; c += VL) {
        for (int64_t k = 0; k < VL; k++)
            at[k] = turned + k * taps; /* the next one overwrites the end of its vector */
        turn_columns(sums + c, width, at, VL, taps);
        memcpy(to + c * taps, turned, (size_t)(VL * taps) * sizeof(float));
    }
    for (int64_t c = 0; taps > VL && c < width; c++)
        for (int64_t t = 0; t < taps; t++)
            to[c * taps + t] = sums[t * width + c];
}

static void run_task(void *context, int64_t index, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct task t = task_at(job, index, thread);
    memset(t.mine.zeros, 0, (size_t)s->blocks.width * sizeof(float));
    point_pixels(&t, t.block.first, smaller(s->blocks.depth, t.block.last - t.block.first),
                 t.mine.seen);
    for (int64_t pixel = t.block.first; pixel < t.block.last; pixel += s->blocks.depth)
        add_pixels(&t, pixel, smaller(s->blocks.depth, t.block.last - pixel));
    float *dw = job->sliced ? job->sliced + t.block.slice * s->dw_floats : job->dw;
    for (int64_t m = 0; m < t.block.rows; m++) {
        int64_t row = t.block.group * s->blocks.group_out + t.block.row + m;
        write_row(t.mine.sums + m * s->blocks.columns, s->blocks.taps, t.block.width,
                  dw + (row * s->blocks.group_in + t.block.channel) * s->blocks.taps);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s,
                      .x = args->in[0],
                      .dy = args->in[1],
                      .dw = args->out[0],
                      .sliced = s->blocks.slices > 1 ? args->workspace : NULL,
                      .scratch = (char *)args->workspace + sliced_bytes(s)};
    pool_run(args->pool, weight_blocks_tasks(&s->blocks), run_task, &job);
    struct slices slices = {job.sliced, s->blocks.slices, s->dw_floats, job.dw,
                            s->out_channels * s->blocks.group_in * s->blocks.taps};
    if (job.sliced)
        slices_add(&slices, args->pool);
}

REGISTER_KERNEL(conv_weight_gradient_pointed) = {
    NATIVE(conv_weight_gradient_pointed),
    .ops = OPS("ConvWeightGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
