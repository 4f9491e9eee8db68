/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of a convolution's weights as sums of outer products (engine/kernels/lib/outer.h): each
 * pixel of dy, a column of M rows, times what its window saw of x, a row of taps * channels. The
 * sums of a block of rows by a block of channels, all taps, stay in the second cache while pixels
 * pass by, `depth` at a time; for those what a panel of columns sees is gathered into the first
 * cache, with zeros for the padding, and every tile of rows reads it there. A kernel of one pixel
 * without strides sees whole pixels, which are read where they lie. Where dw is small,
 * pixels are cut into slices, whose sums are added at the end. How it is cut depends on the shape
 * and the variant alone, so the result is the same on any number of threads.
 *
 * Any stride, dilation and padding, 1 to 3 spatial dimensions, groups. Plain images are turned
 * channels-last first. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/outer.h"
#include "engine/kernels/lib/slices.h"
#include "engine/kernels/lib/weight_blocks.h"
#include "engine/ops/lib/window.h"

enum {
    PANEL = OUTER_VECTORS_MAX * VL,
    TURN_PIXELS = 256,
    LINE_FLOATS = 16,
};

struct kernel_state {
    struct window w;    /* rank 3 */
    struct window seen; /* with the strides that picking does away with */
    struct weight_blocks blocks;
    int64_t images, channels, out_channels, places;
    bool turn_x, turn_dy;
    bool pick;   /* what a kernel of one pixel sees is copied first */
    bool direct; /* a panel of columns is read where it lies in x: nothing is gathered */
    int64_t x_floats, dy_floats, dw_floats, scratch_floats; /* parts of the workspace */
    int threads;
};

/* Best guesses first. */
static const struct weight_tuning gathered[] = {
    {256, 128, 16}, {128, 128, 16}, {64, 256, 16}, {256, 128, 64}, {128, 64, 64},
};
/* A panel that nobody copies is in the first cache only if the pass is short. */
static const struct weight_tuning direct[] = {
    {64, 256, 16},
    {96, 256, 16},
    {48, 256, 16},
    {64, 128, 64},
};

/* Whether what a panel sees is whole vectors of neighbouring pixels. */
static bool lies_in_rows(const struct kernel_state *s)
{
    const struct window *w = &s->w;
    bool all = s->blocks.taps == 1 && s->blocks.group_in % VL == 0;
    for (int d = 0; d < SPATIAL_MAX; d++)
        all = all && w->stride[d] == 1 && !w->pad_begin[d] && w->out[d] == w->in[d];
    return all;
}

/* A kernel of one pixel with strides and no padding: the pixels that it sees are copied once, and
 * the rest goes as if there were no others. */
static bool skips_pixels(const struct kernel_state *s)
{
    bool padded = false, skips = false;
    for (int d = 0; d < SPATIAL_MAX; d++) {
        padded = padded || s->w.pad_begin[d] || s->w.pad_end[d];
        skips = skips || s->w.out[d] != s->w.in[d];
    }
    return s->blocks.taps == 1 && skips && !padded;
}

static void see_no_others(struct kernel_state *s)
{
    for (int d = 0; d < SPATIAL_MAX; d++) {
        s->w.in[d] = s->w.out[d];
        s->w.stride[d] = 1;
    }
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct shape *x = &q->in[0].shape, *dy = &q->in[1].shape;
    struct window window;
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "no fused epilogue, and only plain weights");
    TRY(window_from_node(q->node, x, NULL, &window, why));
    s->turn_x = !desc_is_nhwc(&q->in[0]);
    s->turn_dy = !desc_is_nhwc(&q->in[1]);
    if ((s->turn_x && !desc_is_plain(&q->in[0])) || (s->turn_dy && !desc_is_plain(&q->in[1])))
        return UNSUPPORTED(why, "images are neither plain nor channels-last");
    s->w = window_to_3d(&window);
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->out_channels = dy->dim[1];
    s->places = window_out_count(&s->w);
    s->blocks = (struct weight_blocks){.groups = s->w.group,
                                       .group_in = s->channels / s->w.group,
                                       .group_out = s->out_channels / s->w.group,
                                       .taps = window_taps(&s->w),
                                       .pixels = s->images * s->places};
    if (shape_count(x) == 0 || shape_count(dy) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    s->seen = s->w;
    s->pick = !s->turn_x && skips_pixels(s);
    if (s->pick)
        see_no_others(s);
    s->direct = lies_in_rows(s);
    weight_blocks_cut(&s->blocks, s->direct ? &direct[variant] : &gathered[variant], PANEL,
                      OUTER_ROWS_MAX);
    s->threads = q->threads;
    s->x_floats = s->turn_x ? round_up(shape_count(x), VL) : 0;
    s->x_floats = s->pick ? round_up(s->blocks.pixels * s->channels, VL) : s->x_floats;
    s->dy_floats = s->turn_dy ? round_up(shape_count(dy), VL) : 0;
    s->dw_floats = s->blocks.slices > 1 ? round_up(shape_count(&q->out[0].shape), VL) : 0;
    s->scratch_floats = s->blocks.rows * s->blocks.columns + s->blocks.depth * PANEL;
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return s->direct ? ARRAY_COUNT(direct) : ARRAY_COUNT(gathered);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "%lldx%lld depth %lld%s, %lld slices", (long long)s->blocks.rows,
             (long long)s->blocks.columns, (long long)s->blocks.depth, s->direct ? " direct" : "",
             (long long)s->blocks.slices);
}

static size_t workspace(const struct kernel_state *s)
{
    int64_t floats = s->x_floats + s->dy_floats + s->dw_floats * s->blocks.slices;
    return (size_t)(floats + s->scratch_floats * s->threads) * sizeof(float) + ALIGN_TENSOR;
}

struct job {
    const struct kernel_state *state;
    const float *x, *dy; /* channels-last */
    float *dw;
    float *sliced; /* dw of each slice; NULL: there is one */
    float *scratch;
};

/* ---- turning plain images ---- */

struct turning {
    const float *from;
    float *to;
    int64_t channels, plane;
};

static void turn_pixels(void *context, int64_t task, int thread)
{
    (void)thread;
    const struct turning *t = context;
    int64_t parts = divide_up(t->plane, TURN_PIXELS), image = task / parts;
    int64_t first = task % parts * TURN_PIXELS, last = smaller(first + TURN_PIXELS, t->plane);
    const float *from = t->from + image * t->channels * t->plane;
    float *to = t->to + image * t->channels * t->plane;
    for (int64_t c = 0; c < t->channels; c++)
        for (int64_t p = first; p < last; p++)
            to[p * t->channels + c] = from[c * t->plane + p];
}

static void turn_images(int64_t images, const struct turning *t, struct pool *pool)
{
    struct turning copy = *t;
    pool_run(pool, images * divide_up(t->plane, TURN_PIXELS), turn_pixels, &copy);
}

/* ---- gathering what a panel sees ---- */

/* Where the window of a pixel begins. */
struct place {
    const float *image;
    int64_t at[SPATIAL_MAX];
};

static struct place place_of(const struct job *job, int64_t pixel)
{
    const struct kernel_state *s = job->state;
    const struct window *w = &s->w;
    int64_t image = pixel / s->places, rest = pixel % s->places;
    struct place p = {.image = job->x + image * window_in_count(w) * s->channels};
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        p.at[d] = rest % w->out[d] * w->stride[d] - w->pad_begin[d];
        rest /= w->out[d];
    }
    return p;
}

/* A run of a panel's columns that lie side by side in x, too: channels of one tap, or of several
 * taps of a row of the kernel where a block has all channels of the image. */
struct run {
    int64_t z, y, x;       /* of the first tap */
    int64_t taps, channel; /* of the image */
    int64_t skipped;       /* channels of the first tap that are before the panel */
    int64_t count;
};

SIMD_INLINE void copy_floats(float *to, const float *from, int64_t count)
{
    int64_t k = 0;
    for (; k + VL <= count; k += VL)
        vf_store(to + k, vf_load(from + k));
    if (k < count)
        vf_store_m(to + k, vm_first(count - k), vf_load_m(from + k, vm_first(count - k)));
}

SIMD_INLINE void clear_floats(float *to, int64_t count)
{
    for (int64_t k = 0; k < count; k += VL)
        vf_store_m(to + k, vm_first(count - k), vf_zero());
}

/* One that the edge of the image cuts. */
static void gather_cut(const struct kernel_state *s, const struct run *r, const float *line,
                       int64_t x, float *to)
{
    for (int64_t k = 0; k < r->count; k++) {
        int64_t tap = (r->skipped + k) / s->blocks.width;
        bool inside = x + tap >= 0 && x + tap < s->w.in[2];
        to[k] = inside ? line[x * s->channels + r->skipped + k] : 0;
    }
}

/* Of `count` pixels of a line of the result. */
static void gather_line(const struct kernel_state *s, const struct run *r, const struct place *p,
                        int64_t count, float *to, int64_t step)
{
    const struct window *w = &s->w;
    int64_t z = p->at[0] + r->z, y = p->at[1] + r->y, x = p->at[2] + r->x;
    bool inside = (uint64_t)z < (uint64_t)w->in[0] && (uint64_t)y < (uint64_t)w->in[1];
    const float *line = p->image + (z * w->in[1] + y) * w->in[2] * s->channels + r->channel;
    for (int64_t k = 0; k < count; k++, to += step, x += w->stride[2]) {
        if (!inside || x + r->taps <= 0 || x >= w->in[2])
            clear_floats(to, r->count);
        else if (x >= 0 && x + r->taps <= w->in[2])
            copy_floats(to, line + x * s->channels + r->skipped, r->count);
        else
            gather_cut(s, r, line, x, to);
    }
}

static void gather_run(const struct job *job, const struct run *r, int64_t pixel, int64_t count,
                       float *to, int64_t step)
{
    const struct kernel_state *s = job->state;
    while (count > 0) {
        struct place p = place_of(job, pixel);
        int64_t left = smaller(s->w.out[2] - pixel % s->w.out[2], count);
        gather_line(s, r, &p, left, to, step);
        pixel += left;
        count -= left;
        to += left * step;
    }
}

/* The run that begins at a column of a block and ends before column `end`. */
static struct run run_at(const struct kernel_state *s, int64_t channel, int64_t width,
                         int64_t column, int64_t end)
{
    const struct window *w = &s->w;
    int64_t tap = column / width, x = tap % w->kernel[2], y = tap / w->kernel[2] % w->kernel[1];
    bool joined = width == s->channels && w->dilation[2] == 1;
    int64_t limit = (joined ? w->kernel[2] - x : 1) * width - column % width;
    struct run r = {.z = tap / w->kernel[2] / w->kernel[1] * w->dilation[0],
                    .y = y * w->dilation[1],
                    .x = x * w->dilation[2],
                    .channel = channel,
                    .skipped = column % width,
                    .count = smaller(limit, end - column)};
    r.taps = divide_up(r.skipped + r.count, width);
    return r;
}

/* ---- picking what a kernel of one pixel sees ---- */

struct picking {
    const struct window *seen;
    const float *from;
    float *to;
    int64_t channels;
};

static void pick_line(void *context, int64_t line, int thread)
{
    (void)thread;
    const struct picking *p = context;
    const struct window *w = p->seen;
    int64_t y = line % w->out[1] * w->stride[1], rest = line / w->out[1];
    int64_t z = rest % w->out[0] * w->stride[0], image = rest / w->out[0];
    const float *from = p->from + ((image * w->in[0] + z) * w->in[1] + y) * w->in[2] * p->channels;
    float *to = p->to + line * w->out[2] * p->channels;
    for (int64_t x = 0; x < w->out[2]; x++)
        copy_floats(to + x * p->channels, from + x * w->stride[2] * p->channels, p->channels);
}

/* ---- tasks ---- */

struct task {
    const struct job *job;
    struct weight_block block;
    float *sums, *panel;
};

static struct task task_at(const struct job *job, int64_t index, int thread)
{
    const struct kernel_state *s = job->state;
    struct task t = {.job = job, .block = weight_block_at(&s->blocks, index)};
    t.sums = job->scratch + thread * s->scratch_floats;
    t.panel = t.sums + s->blocks.rows * s->blocks.columns;
    return t;
}

/* All rows of the task, tile by tile, of one panel. Meanwhile the pixels of the next pass are
 * prefetched: dy by the first panel, x by those of the first tap. */
static void add_products(const struct task *t, int64_t pixel, int64_t count, int64_t column,
                         int vectors)
{
    const struct kernel_state *s = t->job->state;
    int64_t tiles = divide_up(t->block.rows, OUTER_ROWS_MAX), next = pixel + count;
    struct outer tile = {.a_step = s->out_channels,
                         .b = t->panel,
                         .b_step = vectors * VL,
                         .k = count,
                         .c_row = s->blocks.columns,
                         .resume = pixel > t->block.first};
    if (s->direct) {
        tile.b = t->job->x + pixel * s->channels + t->block.group * s->blocks.group_in +
                 t->block.channel + column;
        tile.b_step = s->channels;
    }
    const float *dy = t->job->dy + t->block.group * s->blocks.group_out + t->block.row;
    const float *x = place_of(t->job, smaller(next, s->blocks.pixels - 1)).image;
    x += (next % s->places) * s->w.stride[2] * s->channels;
    x += t->block.group * s->blocks.group_in + t->block.channel + column;
    for (int64_t k = 0; k < tiles; k++) {
        int64_t row = t->block.rows * k / tiles, end = t->block.rows * (k + 1) / tiles;
        bool ahead_a = column == 0 && k * LINE_FLOATS < t->block.rows;
        bool ahead_b = column < t->block.width && k * LINE_FLOATS < vectors * VL;
        tile.a = dy + pixel * s->out_channels + row;
        tile.c = t->sums + row * s->blocks.columns + column;
        tile.ahead_a = ahead_a ? dy + next * s->out_channels + k * LINE_FLOATS : t->panel;
        tile.ahead_b = ahead_b ? x + k * LINE_FLOATS : t->panel;
        tile.ahead_a_step = ahead_a ? s->out_channels : 0;
        tile.ahead_b_step = ahead_b ? s->channels * s->w.stride[2] : 0;
        outer_run(&tile, (int)(end - row), vectors);
    }
}

static void add_pixels(const struct task *t, int64_t pixel, int64_t count)
{
    const struct kernel_state *s = t->job->state;
    int64_t columns = s->blocks.taps * t->block.width, vectors = divide_up(columns, VL);
    int64_t panels = divide_up(vectors, OUTER_VECTORS_MAX);
    for (int64_t k = 0; k < panels; k++) {
        int64_t column = vectors * k / panels * VL, step = vectors * (k + 1) / panels * VL - column;
        int64_t end = smaller(column + step, columns);
        for (int64_t at = column; at < end && !s->direct;) {
            struct run r = run_at(s, t->block.group * s->blocks.group_in + t->block.channel,
                                  t->block.width, at, end);
            gather_run(t->job, &r, pixel, count, t->panel + at - column, step);
            at += r.count;
        }
        for (int64_t p = 0; end < column + step && p < count; p++)
            clear_floats(t->panel + p * step + end - column, column + step - end);
        add_products(t, pixel, count, column, (int)(step / VL));
    }
}

/* A row of sums [taps][width] becomes [width][taps]. */
static void write_row(const float *sums, int64_t taps, int64_t width, float *to)
{
    if (taps == 1) {
        copy_floats(to, sums, width);
        return;
    }
    for (int64_t c = 0; c < width; c++)
        for (int64_t t = 0; t < taps; t++)
            to[c * taps + t] = sums[t * width + c];
}

static void run_task(void *context, int64_t index, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct task t = task_at(job, index, thread);
    for (int64_t pixel = t.block.first; pixel < t.block.last; pixel += s->blocks.depth)
        add_pixels(&t, pixel, smaller(s->blocks.depth, t.block.last - pixel));
    float *dw = job->sliced ? job->sliced + t.block.slice * s->dw_floats : job->dw;
    for (int64_t m = 0; m < t.block.rows; m++) {
        int64_t row = t.block.group * s->blocks.group_out + t.block.row + m;
        write_row(t.sums + m * s->blocks.columns, s->blocks.taps, t.block.width,
                  dw + (row * s->blocks.group_in + t.block.channel) * s->blocks.taps);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    float *x = args->workspace, *dy = x + s->x_floats, *sliced = dy + s->dy_floats;
    struct job job = {.state = s,
                      .x = s->turn_x || s->pick ? x : args->in[0],
                      .dy = s->turn_dy ? dy : args->in[1],
                      .dw = args->out[0],
                      .sliced = s->blocks.slices > 1 ? sliced : NULL,
                      .scratch = sliced + s->dw_floats * s->blocks.slices};
    struct turning image = {args->in[0], x, s->channels, window_in_count(&s->w)};
    struct turning result = {args->in[1], dy, s->out_channels, s->places};
    if (s->turn_x)
        turn_images(s->images, &image, args->pool);
    struct picking seen = {&s->seen, args->in[0], x, s->channels};
    if (s->pick)
        pool_run(args->pool, s->blocks.pixels / s->w.out[2], pick_line, &seen);
    if (s->turn_dy)
        turn_images(s->images, &result, args->pool);
    pool_run(args->pool, weight_blocks_tasks(&s->blocks), run_task, &job);
    struct slices slices = {sliced, s->blocks.slices, s->dw_floats, job.dw,
                            s->out_channels * s->blocks.group_in * s->blocks.taps};
    if (job.sliced)
        slices_add(&slices, args->pool);
}

REGISTER_KERNEL(conv_weight_gradient) = {
    NATIVE(conv_weight_gradient),
    .ops = OPS("ConvWeightGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
