/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution, channels last, and grouped convolution with as many inputs as results a
 * group: vectors run over channels, runs of up to four output pixels share their loads
 * (engine/kernels/lib/depthwise.h). Padding reads a row of zeros. Mostly bound by memory: what
 * counts is that each input row comes from the second cache kernel_y - 1 times. Also of bf16, with
 * weights and sums in f32. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/conv_shape.h"
#include "engine/kernels/lib/depthwise.h"

enum { TASKS_PER_THREAD = 4, POINTERS_MAX = 2048 };

struct kernel_state {
    struct conv_shape shape;
    struct gemm_post post;
    int64_t weights_row;
    int64_t row_group, channel_group, row_tasks, channel_tasks;
    bool stream, prefetch, bf16;
    int64_t element; /* bytes of what is not weights or bias */
    float *weights, *bias, *zeros;
};

static enum status check(const struct conv_shape *s, struct error *why)
{
    const struct window *w = &s->window;
    if (w->group == 1)
        return UNSUPPORTED(why, "no groups");
    if (s->group_in != s->group_out)
        return UNSUPPORTED(why, "groups have different numbers of inputs and results");
    if (s->group_in > VL || VL % s->group_in)
        return UNSUPPORTED(why, "%lld channels a group do not divide a vector",
                           (long long)s->group_in);
    if (!window_is_flat(w))
        return UNSUPPORTED(why, "three spatial dimensions");
    int64_t columns =
        (DEPTHWISE_PIXELS_MAX - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
    if ((w->kernel[1] + DEPTHWISE_ROWS_MAX - 1) * columns > POINTERS_MAX)
        return UNSUPPORTED(why, "the window is too wide");
    return STATUS_OK;
}

/* Tasks are groups of output rows, and of channels as well where rows are few. */
static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    s->element = (int64_t)dtype_size(q->in[0].dtype);
    TRY(conv_shape_from(q, s->bf16 ? CONV_BF16 : CONV_PLAIN, &s->shape, why));
    TRY(check(&s->shape, why));
    s->prefetch = variant == 1;
    s->post = s->shape.post;
    s->weights_row = divide_up(s->shape.channels, VL) * VL;
    int64_t rows = s->shape.images * s->shape.window.out[1], wanted = q->threads * TASKS_PER_THREAD;
    s->row_group = rows > wanted ? divide_up(rows, wanted * divide_up(rows, wanted * 8)) : 1;
    s->row_group += s->row_group % 2; /* pairs of rows share loads */
    s->row_tasks = divide_up(rows, s->row_group);
    int64_t split = q->threads > 1 ? divide_up(wanted, s->row_tasks) : 1;
    int64_t vectors = s->weights_row / VL;
    s->channel_group = divide_up(vectors, split < vectors ? split : vectors) * VL;
    s->channel_tasks = divide_up(s->shape.channels, s->channel_group);
    s->stream = !s->bf16 && desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES &&
                s->shape.channels % VL == 0 && s->shape.y_pixel % VL == 0 &&
                s->shape.y_image % VL == 0 && s->post.light == s->post.count;
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return s->shape.group_in == 1 ? 2 : 1; /* prefetch is for depthwise alone */
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "tasks %lldx%lld%s%s", (long long)s->row_tasks,
             (long long)s->channel_tasks, s->prefetch ? " prefetch" : "",
             s->stream ? " stream" : "");
}

static void release(struct kernel_state *state)
{
    memory_free(state->weights);
    memory_free(state->bias);
    memory_free(state->zeros);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    const struct conv_shape *s = &state->shape;
    int64_t taps = window_taps(&s->window), depth = s->group_in;
    size_t row_bytes = (size_t)state->weights_row * sizeof(float);
    state->weights = memory_alloc(row_bytes * (size_t)(taps * depth));
    state->bias = memory_alloc(row_bytes);
    state->zeros = memory_alloc(row_bytes);
    if (!state->weights || !state->bias || !state->zeros)
        return FAIL_NO_MEMORY(err);
    memset(state->weights, 0, row_bytes * (size_t)(taps * depth));
    memset(state->bias, 0, row_bytes);
    memset(state->zeros, 0, row_bytes);
    gemm_post_take_bias(q, &state->post, state->bias, s->channels);
    *packed_bytes = row_bytes * (size_t)(taps * depth + 2);
    return STATUS_OK;
}

/* Few weights: they stay in the state even where they come with each launch. */
static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct conv_shape *s = &state->shape;
    const void *weights = args->in[1];
    int64_t taps = window_taps(&s->window);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t j = 0; j < s->group_in; j++)
            for (int64_t t = 0; t < taps; t++)
                state->weights[(j * taps + t) * state->weights_row + c] =
                    float_read(weights, c * s->w_out + j * s->w_in + t * s->w_tap, state->bf16);
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

/* A run of output: rows [oy, oy + rows) of one image, channels [first, end). */
struct strip {
    const struct job *job;
    const char *image;
    int64_t oy;
    int rows;
    struct gemm_pixels to[DEPTHWISE_ROWS_MAX];
    const float *operands[DEPTHWISE_ROWS_MAX][GEMM_STEP_MAX];
};

/* Pointers to the input pixels that `count` output pixels from ox on see. */
static void point_pixels(const struct strip *strip, const struct depthwise *d, int64_t ox,
                         const void **to)
{
    const struct kernel_state *state = strip->job->state;
    const struct conv_shape *s = &state->shape;
    const struct window *w = &s->window;
    int64_t first = ox * w->stride[2] - w->pad_begin[2];
    int64_t pixel = s->x_at[2] * state->element, row = s->x_at[1] * state->element;
    bool within = first >= 0 && first + d->columns <= w->in[2];
    int64_t top = strip->oy * w->stride[1] - w->pad_begin[1];
    for (int64_t k = 0; k < d->kernel_y + strip->rows - 1; k++, to += d->columns) {
        int64_t y = top + k * w->dilation[1];
        bool inside = (uint64_t)y < (uint64_t)w->in[1];
        const char *line = (const char *)state->zeros;
        if (inside)
            line = strip->image + y * row + first * pixel;
        int64_t step = inside ? pixel : 0;
        for (int64_t c = 0; within && c < d->columns; c++)
            to[c] = line + c * step;
        for (int64_t c = 0; !within && c < d->columns; c++)
            to[c] = (uint64_t)(first + c) < (uint64_t)w->in[2] ? line + c * step
                                                               : (const char *)state->zeros;
    }
}

static void heavy_steps(const struct gemm_pixels *p, const struct depthwise *d, int count)
{
    const float *operands[GEMM_STEP_MAX] = {0};
    for (int k = p->post->light; k < p->post->count; k++)
        if (p->operands[k])
            operands[k] = p->operands[k] + d->first * p->post->steps[k].column;
    gemm_post_heavy(p->post, operands, (float *)p->y + d->first, p->y_pixel, count,
                    d->end - d->first);
}

/* Where row r of the strip goes, and its operands. */
static void locate_row(struct strip *strip, int64_t image, int r)
{
    const struct kernel_state *state = strip->job->state;
    const struct kernel_args *args = strip->job->args;
    const struct conv_shape *s = &state->shape;
    int64_t pixel = (strip->oy + r) * s->window.out[2];
    for (int k = 0; k < state->post.count; k++) {
        const struct gemm_step *step = &state->post.steps[k];
        int64_t per_image = s->folded ? step->row * s->pixels : step->batch[0];
        strip->operands[r][k] = NULL;
        if (step->input >= 0)
            strip->operands[r][k] =
                gemm_operand_at(step, args->in[step->input], image * per_image + pixel * step->row);
    }
    int64_t at = image * s->y_image + pixel * s->y_pixel;
    void *y = (char *)args->out[0] + at * state->element;
    bool stream = state->stream && (uintptr_t)y % (VL * sizeof(float)) == 0;
    strip->to[r] = (struct gemm_pixels){&state->post, strip->operands[r], y, s->y_pixel, stream};
}

static void advance_row(struct strip *strip, int r, int count)
{
    struct gemm_pixels *to = &strip->to[r];
    to->y = (char *)to->y + count * to->y_pixel * strip->job->state->element;
    for (int k = 0; k < to->post->count; k++) {
        const struct gemm_step *step = &to->post->steps[k];
        strip->operands[r][k] = gemm_operand_at(step, strip->operands[r][k], count * step->row);
    }
}

static void run_strip(struct strip *strip, const struct depthwise *shape)
{
    const struct kernel_state *state = strip->job->state;
    const void *pixels[POINTERS_MAX];
    int64_t width = state->shape.window.out[2];
    struct depthwise d = *shape;
    d.pixels = pixels;
    for (int64_t ox = 0; ox < width;) {
        int64_t left = width - ox;
        int count = (int)divide_up(left, divide_up(left, DEPTHWISE_PIXELS_MAX));
        d.columns = (count - 1) * d.step + (d.kernel_x - 1) * d.tap + 1;
        d.ahead = state->prefetch ? count * d.step * state->shape.x_at[2] : 0;
        point_pixels(strip, &d, ox, pixels);
        depthwise_run(&d, strip->rows, count, strip->to);
        for (int r = 0; r < strip->rows; r++) {
            if (!state->bf16 && state->post.light < state->post.count)
                heavy_steps(&strip->to[r], &d, count);
            advance_row(strip, r, count);
        }
        ox += count;
    }
}

/* Output rows [row, end_row), counted over all images. */
static void run_rows(const struct job *job, int64_t row, int64_t end_row, const struct depthwise *d)
{
    const struct conv_shape *s = &job->state->shape;
    int64_t height = s->window.out[1];
    while (row < end_row) {
        int64_t image = row / height;
        struct strip strip = {.job = job, .oy = row % height, .rows = 1};
        strip.image = (const char *)job->args->in[0] + image * s->x_image * job->state->element;
        if (depthwise_two_rows(d) && s->window.dilation[1] == 1 && strip.oy + 1 < height &&
            s->window.stride[1] == 1 && row + 1 < end_row)
            strip.rows = 2;
        for (int r = 0; r < strip.rows; r++)
            locate_row(&strip, image, r);
        run_strip(&strip, d);
        row += strip.rows;
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->shape.window;
    int64_t row = task / s->channel_tasks * s->row_group;
    int64_t end_row = row + s->row_group, rows = s->shape.images * w->out[1];
    int64_t first = task % s->channel_tasks * s->channel_group, end = first + s->channel_group;
    (void)thread;
    struct depthwise d = {.kernel_y = (int)w->kernel[1],
                          .kernel_x = (int)w->kernel[2],
                          .step = (int)w->stride[2],
                          .tap = (int)w->dilation[2],
                          .depth = (int)s->shape.group_in,
                          .bf16 = s->bf16,
                          .weights = s->weights,
                          .weights_row = s->weights_row,
                          .bias = s->bias,
                          .first = first,
                          .end = end < s->shape.channels ? end : s->shape.channels};
    depthwise_set_bounds(&d, &s->post);
    run_rows(job, row, end_row < rows ? end_row : rows, &d);
    if (s->stream)
        simd_fence();
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args};
    pool_run(args->pool, state->row_tasks * state->channel_tasks, run_task, &job);
}

REGISTER_KERNEL(conv_depthwise) = {
    NATIVE(conv_depthwise), .ops = OPS("Conv"),
    .packs = 1u << 1,       .state_size = sizeof(struct kernel_state),
    .plan = plan,           .variants = variants,
    .describe = describe,   .prepare = prepare,
    .pack = pack,           .launch = launch,
    .release = release,
};
