/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of an image of few channels: the first layer of a network, patch embeddings. Taps
 * along a line times channels are one dense run of the reduction (7 x 3 = 21 elements of a 7x7
 * kernel), so nothing is wasted on padding channels to a vector. For that a chunk's band of input
 * lines is first copied to the thread's scratch with the horizontal padding as zeros; the same copy
 * turns planes (NCHW) into channels last. A band is read from the second cache by all its taps. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/conv_shape.h"
#include "engine/kernels/lib/workspace.h"

enum { CHANNELS_MAX = 16 };

struct kernel_state {
    struct conv_shape shape;
    struct gemm_plan plan;
    struct gemm_post post;
    float *packed, *bias; /* packed NULL: in the workspace */
    bool changing;        /* weights come with each launch */
    int64_t line;         /* floats of a padded line */
    int64_t band_lines;   /* most lines that a chunk reads */
};

struct tuning {
    int vectors, rows;
};

/* Best guesses first. */
#if defined(__AVX512F__)
static const struct tuning tunings[] = {{4, 6}, {2, 12}, {3, 8}, {2, 14}, {1, 14}};
#elif defined(__AVX2__)
static const struct tuning tunings[] = {{2, 6}, {3, 4}};
#else
static const struct tuning tunings[] = {{4, 4}, {4, 3}};
#endif

/* Large results are streamed, but for the last two variants. */
static struct gemm_plan plan_of(const struct kernel_query *q, const struct conv_shape *s,
                                int variant)
{
    const struct tuning *t = &tunings[variant % ARRAY_COUNT(tunings)];
    bool large = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
    struct gemm_size size = {.batch = s->images,
                             .m = s->pixels,
                             .n = s->out_channels,
                             .taps = s->window.kernel[1],
                             .k = s->window.kernel[2] * s->channels,
                             .vectors = t->vectors,
                             .rows = t->rows,
                             .threads = q->threads,
                             .stream = large && variant < ARRAY_COUNT(tunings)};
    return gemm_plan_for(&size);
}

/* ---- the band ---- */

static void measure_band(struct kernel_state *state)
{
    const struct window *w = &state->shape.window;
    int64_t reach = (w->out[2] - 1) * w->stride[2] + w->kernel[2];
    state->line = reach * state->shape.channels;
    int64_t rows = state->plan.row_tiles * (state->plan.rows_even + 1);
    int64_t lines = (rows + w->out[2] - 2) / w->out[2] + 1; /* of output, begun anywhere */
    lines = lines < w->out[1] ? lines : w->out[1];
    state->band_lines = (lines - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

static size_t band_bytes(const struct kernel_state *state)
{
    return aligned_bytes((size_t)(state->line * state->band_lines + VL) * sizeof(float));
}

struct source {
    const struct kernel_state *state;
    const float *x;
};

/* `count` pixels of one line, channels interleaved. */
static void copy_pixels(const struct conv_shape *s, const float *from, int64_t count, float *to)
{
    int64_t channels = s->channels, plane = s->x_channel, pixel = s->x_at[2];
    if (s->x_channel == 1 && pixel == channels) {
        memcpy(to, from, (size_t)(count * channels) * sizeof(float));
        return;
    }
    if (channels == 3 && pixel == 1) {
        for (int64_t x = 0; x < count; x++) {
            to[3 * x] = from[x];
            to[3 * x + 1] = from[plane + x];
            to[3 * x + 2] = from[2 * plane + x];
        }
        return;
    }
    for (int64_t c = 0; c < channels; c++)
        for (int64_t x = 0; x < count; x++)
            to[x * channels + c] = from[c * plane + x * pixel];
}

static void copy_line(const struct kernel_state *state, const float *image, int64_t y, float *to)
{
    const struct conv_shape *s = &state->shape;
    const struct window *w = &s->window;
    if (y < 0 || y >= w->in[1]) {
        memset(to, 0, (size_t)state->line * sizeof(float));
        return;
    }
    int64_t total = state->line / s->channels, left = w->pad_begin[2];
    left = smaller(left, total);
    int64_t count = w->in[2] < total - left ? w->in[2] : total - left;
    memset(to, 0, (size_t)(left * s->channels) * sizeof(float));
    copy_pixels(s, image + y * s->x_at[1], count, to + left * s->channels);
    memset(to + (left + count) * s->channels, 0,
           (size_t)((total - left - count) * s->channels) * sizeof(float));
}

/* The input line that the band of an output row begins with. */
static int64_t band_start(const struct conv_shape *s, int64_t row)
{
    return row / s->window.out[2] * s->window.stride[1] - s->window.pad_begin[1];
}

struct band {
    int64_t start;
    float *lines;
};

static struct band *band_in(void *scratch)
{
    return scratch;
}

static void begin(const struct gemm_rows *rows)
{
    const struct source *from = rows->source;
    const struct conv_shape *s = &from->state->shape;
    const struct window *w = &s->window;
    struct band *band = band_in(rows->scratch);
    band->start = band_start(s, rows->row);
    band->lines = (float *)(void *)((char *)rows->scratch + ALIGN_TENSOR);
    int64_t end =
        band_start(s, rows->row + rows->count - 1) + (w->kernel[1] - 1) * w->dilation[1] + 1;
    for (int64_t y = band->start; y < end; y++)
        copy_line(from->state, from->x + rows->batch * s->x_image, y,
                  band->lines + (y - band->start) * from->state->line);
}

static void point_rows(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct source *from = rows->source;
    const struct conv_shape *s = &from->state->shape;
    const struct window *w = &s->window;
    const struct band *band = band_in(rows->scratch);
    int64_t pixel = w->stride[2] * s->channels, tap = w->dilation[1] * from->state->line;
    int64_t x = rows->row % w->out[2], line = rows->row - x;
    for (int64_t m = 0; m < rows->count; m++) {
        const float *first =
            band->lines + x * pixel + (band_start(s, line) - band->start) * from->state->line;
        for (int64_t t = 0; t < w->kernel[1]; t++)
            to[t * step + m] = first + t * tap;
        if (++x == w->out[2]) {
            x = 0;
            line += w->out[2];
        }
    }
}

/* ---- hooks ---- */

static enum status fits(const struct conv_shape *s, struct error *why)
{
    const struct window *w = &s->window;
    if (w->group > 1)
        return UNSUPPORTED(why, "groups");
    if (s->channels > CHANNELS_MAX)
        return UNSUPPORTED(why, "more than %d input channels", CHANNELS_MAX);
    if (!window_is_flat(w))
        return UNSUPPORTED(why, "three spatial dimensions");
    if (w->dilation[2] != 1)
        return UNSUPPORTED(why, "dilation along lines");
    if (s->x_at[2] != 1 && s->x_channel != 1)
        return UNSUPPORTED(why, "neither lines nor channels of the input are dense");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    TRY(conv_shape_from(q, CONV_PLANES | CONV_BY_IMAGE, &state->shape, why));
    TRY(fits(&state->shape, why));
    state->plan = plan_of(q, &state->shape, variant);
    state->post = state->shape.post;
    state->changing = !q->fixed[1];
    measure_band(state);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return ARRAY_COUNT(tunings) + (s->plan.size.stream ? 2 : 0);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
}

/* Of the workspace: gemm's own, the bands, weights that change. */
static size_t before_weights(const struct kernel_state *s)
{
    return gemm_workspace(&s->plan) + (band_bytes(s) + ALIGN_TENSOR) * (size_t)s->plan.size.threads;
}

static size_t weight_bytes(const struct kernel_state *s)
{
    return (size_t)gemm_packed_floats(&s->plan) * sizeof(float);
}

static size_t workspace(const struct kernel_state *s)
{
    return before_weights(s) + (s->changing ? weight_bytes(s) : 0);
}

static float *panels(const struct kernel_state *s, const struct kernel_args *args)
{
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + before_weights(s));
}

static void release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->bias);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    size_t weights = state->changing ? 0 : weight_bytes(state);
    size_t bias = (size_t)gemm_bias_floats(&state->plan) * sizeof(float);
    state->packed = weights ? memory_alloc(weights) : NULL;
    state->bias = memory_alloc(bias);
    if ((weights && !state->packed) || !state->bias)
        return FAIL_NO_MEMORY(err);
    memset(state->bias, 0, bias);
    gemm_post_take_bias(q, &state->post, state->bias, state->shape.out_channels);
    *packed_bytes = weights + bias;
    return STATUS_OK;
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    conv_pack(&state->shape, &state->plan, args->in[1], args->pool, panels(state, args));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct conv_shape *s = &state->shape;
    struct source source = {state, args->in[0]};
    struct gemm_call call = {.rows = point_rows,
                             .begin = begin,
                             .source = &source,
                             .scratch = (char *)args->workspace + gemm_workspace(&state->plan),
                             .scratch_bytes = band_bytes(state) + ALIGN_TENSOR,
                             .b = panels(state, args),
                             .bias = state->bias,
                             .c = args->out[0],
                             .c_row = s->y_pixel,
                             .post = &state->post,
                             .in = args->in,
                             .batch_rank = 1,
                             .batch_dim = &s->images,
                             .c_batch = &s->y_image,
                             .workspace = args->workspace};
    gemm_run(&state->plan, &call, args->pool);
}

REGISTER_KERNEL(conv_stem) = {
    NATIVE(conv_stem),    .ops = OPS("Conv"),
    .packs = 1u << 1,     .state_size = sizeof(struct kernel_state),
    .plan = plan,         .variants = variants,
    .describe = describe, .workspace = workspace,
    .prepare = prepare,   .pack = pack,
    .launch = launch,     .release = release,
};
