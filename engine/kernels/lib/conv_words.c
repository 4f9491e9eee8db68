/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/conv_source.h"
#include "engine/kernels/lib/conv_words.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum { WORD = 4, SIGN = 128, X = 0, WEIGHTS, SCALE, OFFSET };

/* ---- the copy ---- */

static int64_t padded(const struct window *w, int d)
{
    return w->pad_begin[d] + w->in[d] + w->pad_end[d];
}

/* The same convolution of the copy, in which padding is memory like any other. */
static struct conv_shape shape_of_copy(const struct kernel_state *s)
{
    struct conv_shape copy = s->shape;
    struct window *w = &copy.window;
    int64_t step = s->pixel;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        copy.x_at[d] = step;
        step *= padded(w, d);
        w->in[d] = padded(w, d);
        w->pad_begin[d] = w->pad_end[d] = 0;
    }
    copy.x_image = step;
    copy.x_channel = 1;
    copy.channels = copy.group_in = s->pixel;
    w->kernel[SPATIAL_MAX - 1] /= s->taps;
    return copy;
}

static int64_t copy_lines(const struct kernel_state *s)
{
    const struct window *w = &s->source.window;
    return s->shape.images * w->in[0] * w->in[1];
}

/* With what the last run reads beyond: times zero, but a NaN would stay one. */
static size_t copy_bytes(const struct kernel_state *s)
{
    int64_t elements = s->shape.images * s->source.x_image;
    return s->copied ? (size_t)(elements * s->words.element) + WORD : 0;
}

struct copying {
    const struct kernel_state *state;
    const char *x;
    char *to;
    unsigned char zero;
};

/* A line's pixels; they come one after the other, in planes, or apart. */
#define COPY_PIXELS(name, type)                                                                    \
    static void name(const struct kernel_state *s, const type *from, type *to)                     \
    {                                                                                              \
        const struct conv_shape *shape = &s->shape;                                                \
        int64_t count = shape->window.in[2], step = shape->x_at[2], channels = shape->channels;    \
        if (shape->x_channel != 1) {                                                               \
            for (int64_t c = 0; c < channels; c++, from += shape->x_channel, to++)                 \
                for (int64_t x = 0; x < count; x++)                                                \
                    to[x * s->pixel] = (type)(from[x * step] ^ s->flip);                           \
            return;                                                                                \
        }                                                                                          \
        if (step == channels && s->pixel == channels) {                                            \
            channels *= count;                                                                     \
            count = 1;                                                                             \
        }                                                                                          \
        for (int64_t x = 0; x < count; x++, from += step, to += s->pixel)                          \
            for (int64_t c = 0; c < channels; c++)                                                 \
                to[c] = (type)(from[c] ^ s->flip);                                                 \
    }
COPY_PIXELS(copy_byte_pixels, uint8_t)
COPY_PIXELS(copy_half_pixels, uint16_t)

/* Line `index` of all lines of the copy. */
static void copy_line(void *context, int64_t index, int thread)
{
    const struct copying *job = context;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->shape.window, *all = &s->source.window;
    int64_t bytes = all->in[2] * s->pixel * s->words.element;
    int64_t y = index % all->in[1] - w->pad_begin[1];
    int64_t z = index / all->in[1] % all->in[0] - w->pad_begin[0];
    int64_t image = index / all->in[1] / all->in[0];
    char *to = job->to + index * bytes;
    (void)thread;
    memset(to, job->zero, (size_t)bytes);
    if (y < 0 || y >= w->in[1] || z < 0 || z >= w->in[0])
        return;
    const struct conv_shape *shape = &s->shape;
    int64_t first = image * shape->x_image + z * shape->x_at[0] + y * shape->x_at[1];
    const void *from = job->x + first * s->words.element;
    void *inside = to + w->pad_begin[2] * s->pixel * s->words.element;
    if (s->words.element == 1)
        copy_byte_pixels(s, from, inside);
    else
        copy_half_pixels(s, from, inside);
}

/* ---- planning ---- */

static enum status read_node(conv_words_from *from, const struct kernel_query *q,
                             struct kernel_state *s, struct error *why)
{
    TRY(from(q, &s->words, why));
    const struct rescale *r = &s->words.rescale;
    bool bytes = s->words.element == 1;
    TRY(conv_shape_from(q, CONV_PLANES | (bytes ? CONV_BYTES : CONV_BF16), &s->shape, why));
    s->post = s->shape.post;
    s->post.light = bytes ? 0 : s->post.light;
    if (!q->fixed[WEIGHTS])
        return UNSUPPORTED(why, "weights are not known beforehand");
    if (bytes && r->w_zero != (q->in[WEIGHTS].dtype == DTYPE_U8 ? SIGN : 0))
        return UNSUPPORTED(why, "weights with a zero point of %d", r->w_zero);
    if (s->words.rescales && r->to != DTYPE_F32 && s->post.count)
        return UNSUPPORTED(why, "steps after the rounding");
    s->flip = q->in[X].dtype == DTYPE_I8 ? SIGN : 0;
    s->zero = (unsigned char)(r->x_zero + s->flip);
    return STATUS_OK;
}

static enum status read_groups(struct kernel_state *s, struct error *why)
{
    const struct conv_shape *shape = &s->shape;
    int64_t groups = shape->window.group, per = WORD / s->words.element;
    if (groups > 1 && shape->group_in == 1 && shape->group_out == 1 &&
        window_is_flat(&shape->window))
        return UNSUPPORTED(why, "depthwise");
    s->merged = conv_merged_groups(shape);
    s->groups = groups / s->merged;
    if (groups > 1 && s->merged * shape->group_in % per)
        return UNSUPPORTED(why, "groups without whole words of channels");
    s->batch_dim[0] = conv_batches(shape);
    s->c_batch[0] = shape->y_image;
    s->batch_dim[1] = s->groups;
    s->c_batch[1] = s->merged * shape->group_out;
    for (int k = 0; k < s->post.count; k++)
        s->post.steps[k].batch[1] = s->c_batch[1] * s->post.steps[k].column;
    return STATUS_OK;
}

static int element_of_result(const struct kernel_state *s)
{
    bool bytes = s->words.rescales && s->words.rescale.to != DTYPE_F32;
    return s->words.element == 2 ? 2 : bytes;
}

static struct gemm_size size_of(const struct kernel_query *q, const struct kernel_state *s,
                                const struct word_tuning *t)
{
    const struct conv_shape *c = &s->source;
    int narrow = element_of_result(s);
    return (struct gemm_size){.batch = conv_batches(c) * s->groups,
                              .m = conv_rows(c),
                              .n = c->group_out * s->merged,
                              .taps = window_taps(&c->window),
                              .k = s->run * s->words.element / WORD,
                              .math = t->math,
                              .narrow = narrow,
                              .vectors = t->vectors,
                              .rows = t->rows,
                              .block_k = 512,
                              .stream = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES && !narrow,
                              .threads = q->threads};
}

static double macs_of(const struct conv_shape *s)
{
    return (double)s->images * (double)s->pixels * (double)s->out_channels * (double)s->group_in *
           (double)window_taps(&s->window);
}

enum status conv_words_plan(conv_words_from *from, const struct kernel_query *q, int variant,
                            struct kernel_state *s, struct error *why)
{
    const struct word_tuning *t;
    TRY(read_node(from, q, s, why));
    TRY(read_groups(s, why));
    const struct window *w = &s->shape.window;
    int64_t per = WORD / s->words.element, read = s->shape.group_in * s->merged;
    s->copied = read % per || s->flip || s->shape.x_channel != 1;
    bool lines = s->copied && w->dilation[SPATIAL_MAX - 1] == 1 && s->groups == 1;
    s->taps = lines ? w->kernel[SPATIAL_MAX - 1] : 1;
    s->pixel = lines ? s->shape.channels : round_up(s->shape.channels, per);
    s->run = s->groups > 1 ? read : round_up(s->taps * s->pixel, per);
    s->source = s->copied ? shape_of_copy(s) : s->shape;
    word_tunings(s->words.element, macs_of(&s->shape), variant, &t);
    struct gemm_size size = size_of(q, s, t);
    s->plan = gemm_plan_for(&size);
    return STATUS_OK;
}

int conv_words_variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    return word_tunings(s->words.element, macs_of(&s->shape), 0, &none);
}

void conv_words_describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
    size_t used = strlen(text);
    enum gemm_math math = s->plan.size.math;
    snprintf(text + used, size - used, "%s%s", s->copied ? " copied" : "",
             math == GEMM_BYTES || math == GEMM_BF16 ? " widened" : "");
}

/* All groups'. */
static size_t column_bytes(const struct kernel_state *s)
{
    return (size_t)(gemm_bias_floats(&s->plan) * s->groups) * WORD;
}

static size_t run_bytes(const struct kernel_state *s)
{
    return (size_t)(s->run * s->words.element);
}

/* Bytes of what follows from a zero point that comes with a launch: starts of sums, padding. */
static size_t late_bytes(const struct kernel_state *s)
{
    return s->words.x_zero == NONE ? 0
                                   : aligned_bytes(column_bytes(s)) + aligned_bytes(run_bytes(s));
}

size_t conv_words_workspace(const struct kernel_state *s)
{
    return aligned_bytes(copy_bytes(s)) + late_bytes(s) + gemm_workspace(&s->plan);
}

/* ---- weights ---- */

/* Elements of the weights of a channel, in the order in which x is read. */
static int64_t depth_of(const struct kernel_state *s)
{
    return window_taps(&s->shape.window) / s->taps * s->run;
}

/* [channel][tap of the product][its elements]; zero where groups taken together do not meet. */
#define ORDER_WEIGHTS(name, type)                                                                  \
    static void name(const struct kernel_state *s, const type *weights, type *to)                  \
    {                                                                                              \
        const struct conv_shape *c = &s->shape;                                                    \
        unsigned char flip = s->words.rescale.w_zero ? SIGN : 0;                                   \
        int64_t taps = window_taps(&c->window);                                                    \
        memset(to, 0, (size_t)(c->out_channels * depth_of(s)) * sizeof(type));                     \
        weights += c->w_first;                                                                     \
        for (int64_t m = 0; m < c->out_channels; m++, weights += c->w_out, to += depth_of(s)) {    \
            type *group = to + m / c->group_out % s->merged * c->group_in;                         \
            for (int64_t t = 0; t < taps; t++)                                                     \
                for (int64_t k = 0; k < c->group_in; k++)                                          \
                    group[t / s->taps * s->run + t % s->taps * s->pixel + k] =                     \
                        (type)(weights[k * c->w_in + t * c->w_tap] ^ flip);                        \
        }                                                                                          \
    }
ORDER_WEIGHTS(order_bytes, uint8_t)
ORDER_WEIGHTS(order_halves, uint16_t)

static void pack_weights(const struct kernel_query *q, struct kernel_state *s,
                         unsigned char *ordered)
{
    struct gemm_plan whole = s->plan; /* all taps are one */
    bool bytes = s->words.element == 1;
    int64_t group_bytes = s->plan.size.n * depth_of(s) * s->words.element;
    if (bytes)
        order_bytes(s, q->fixed[WEIGHTS], ordered);
    else
        order_halves(s, q->fixed[WEIGHTS], (uint16_t *)(void *)ordered);
    whole.size.k *= whole.size.taps;
    whole.size.taps = 1;
    for (int64_t g = 0; g < s->groups; g++) {
        struct gemm_source_words from = {.b = ordered + g * group_bytes,
                                         .k = depth_of(s),
                                         .row = 1,
                                         .column = depth_of(s),
                                         .element = s->words.element};
        gemm_pack_words(&whole, &from, 0, s->plan.panels,
                        s->packed + g * gemm_packed_floats(&s->plan),
                        bytes ? s->sums + g * gemm_bias_floats(&s->plan) : NULL);
    }
}

/* From what a channel's sums start: less the zero point times its weights. */
static void make_start(const struct kernel_state *s, unsigned char zero, int32_t *start)
{
    int64_t columns = (int64_t)column_bytes(s) / WORD;
    for (int64_t n = 0; n < columns; n++)
        start[n] = (int32_t)(0u - (uint32_t)zero * (uint32_t)s->sums[n]);
}

/* One number per channel, each group's padded. */
static void spread_columns(const struct kernel_state *s, const float *from, float *to)
{
    int64_t padded = gemm_bias_floats(&s->plan), columns = s->plan.size.n;
    memset(to, 0, column_bytes(s));
    for (int64_t g = 0; from && g < s->groups; g++)
        memcpy(to + g * padded, from + g * columns, (size_t)columns * sizeof(*to));
}

/* scratch: a float for each channel. */
static void fill(const struct kernel_query *q, struct kernel_state *s, unsigned char *ordered,
                 float *scratch)
{
    pack_weights(q, s, ordered);
    memset(s->zeros, s->zero, run_bytes(s));
    if (s->words.element == 1)
        make_start(s, s->zero, s->start);
    else if (gemm_post_take_bias(q, &s->post, scratch, s->shape.out_channels))
        spread_columns(s, scratch, s->start);
    else
        spread_columns(s, NULL, s->start);
    spread_columns(s, s->words.rescales ? q->fixed[SCALE] : NULL, s->scale);
    spread_columns(s, s->words.rescales ? q->fixed[OFFSET] : NULL, s->offset);
}

enum status conv_words_prepare(const struct kernel_query *q, struct kernel_state *s,
                               size_t *packed_bytes, struct error *err)
{
    size_t packed = (size_t)(gemm_packed_floats(&s->plan) * s->groups) * WORD;
    size_t columns = column_bytes(s), weights = (size_t)(s->shape.out_channels * depth_of(s));
    s->packed = memory_alloc(packed);
    s->sums = memory_alloc(columns);
    s->start = memory_alloc(columns);
    s->scale = memory_alloc(columns);
    s->offset = memory_alloc(columns);
    s->zeros = memory_alloc(run_bytes(s));
    unsigned char *ordered = memory_alloc(weights * (size_t)s->words.element);
    float *scratch = memory_alloc((size_t)s->shape.out_channels * sizeof(*scratch));
    bool fine =
        s->packed && s->sums && s->start && s->scale && s->offset && s->zeros && ordered && scratch;
    if (fine)
        fill(q, s, ordered, scratch);
    memory_free(ordered);
    memory_free(scratch);
    *packed_bytes = packed + 4 * columns + run_bytes(s);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- launch ---- */

/* What zero points decide. */
struct zeros {
    unsigned char zero;
    const void *start;
    const unsigned char *row;
};

static struct zeros zeros_of(const struct kernel_state *s, const struct kernel_args *args)
{
    if (s->words.x_zero == NONE)
        return (struct zeros){s->zero, s->start, s->zeros};
    const unsigned char *given = args->in[s->words.x_zero];
    unsigned char zero = *given ^ s->flip;
    char *late = (char *)args->workspace + aligned_bytes(copy_bytes(s));
    int32_t *start = (int32_t *)(void *)late;
    unsigned char *row = (unsigned char *)late + aligned_bytes(column_bytes(s));
    make_start(s, zero, start);
    memset(row, zero, run_bytes(s));
    return (struct zeros){zero, start, row};
}

void conv_words_launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const void *x = args->in[X];
    struct zeros zeros = zeros_of(s, args);
    if (s->copied) {
        struct copying job = {s, x, args->workspace, zeros.zero};
        pool_run(args->pool, copy_lines(s), copy_line, &job);
        memset((char *)args->workspace + copy_bytes(s) - WORD, 0, WORD);
        x = args->workspace;
    }
    struct conv_source source = conv_source_of(&s->source, (size_t)s->words.element, x, zeros.row);
    source.groups = s->groups;
    source.group_bytes = s->shape.group_in * s->merged * s->words.element;
    struct gemm_rescale rescale = {.scale = s->scale,
                                   .offset = s->offset,
                                   .low = s->words.rescale.low,
                                   .high = s->words.rescale.high,
                                   .zero = s->words.rescale.zero};
    struct gemm_call call = {.rows = conv_source_rows,
                             .source = &source,
                             .b = s->packed,
                             .b_batch = gemm_packed_floats(&s->plan),
                             .b_period = s->groups,
                             .bias = zeros.start,
                             .bias_batch = gemm_bias_floats(&s->plan),
                             .rescale = s->words.rescales ? &rescale : NULL,
                             .rescale_batch = gemm_bias_floats(&s->plan),
                             .c = args->out[0],
                             .c_row = s->shape.y_pixel,
                             .post = &s->post,
                             .in = args->in,
                             .batch_rank = 2,
                             .batch_dim = s->batch_dim,
                             .c_batch = s->c_batch,
                             .workspace = (char *)args->workspace + aligned_bytes(copy_bytes(s)) +
                                          late_bytes(s)};
    gemm_run(&s->plan, &call, args->pool);
}

void conv_words_release(struct kernel_state *s)
{
    memory_free(s->packed);
    memory_free(s->sums);
    memory_free(s->start);
    memory_free(s->scale);
    memory_free(s->offset);
    memory_free(s->zeros);
}
