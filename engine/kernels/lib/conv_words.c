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

static size_t copy_bytes(const struct kernel_state *s)
{
    return s->copied ? (size_t)(s->shape.images * s->source.x_image) + WORD : 0;
}

struct copying {
    const struct kernel_state *state;
    const unsigned char *x;
    unsigned char *to, zero;
};

static void copy_pixels(const struct kernel_state *s, const unsigned char *from, unsigned char *to)
{
    const struct conv_shape *shape = &s->shape;
    int64_t count = shape->window.in[2], step = shape->x_at[2], channels = shape->channels;
    if (step == channels && s->pixel == channels && shape->x_channel == 1) {
        for (int64_t i = 0; i < count * channels; i++)
            to[i] = from[i] ^ s->flip;
        return;
    }
    if (shape->x_channel != 1) {
        for (int64_t c = 0; c < channels; c++, from += shape->x_channel, to++)
            for (int64_t x = 0; x < count; x++)
                to[x * s->pixel] = from[x * step] ^ s->flip;
        return;
    }
    for (int64_t x = 0; x < count; x++, from += step, to += s->pixel)
        for (int64_t c = 0; c < channels; c++)
            to[c] = from[c] ^ s->flip;
}

/* Line `index` of all lines of the copy. */
static void copy_line(void *context, int64_t index, int thread)
{
    const struct copying *job = context;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->shape.window, *all = &s->source.window;
    int64_t bytes = all->in[2] * s->pixel, y = index % all->in[1] - w->pad_begin[1];
    int64_t z = index / all->in[1] % all->in[0] - w->pad_begin[0];
    int64_t image = index / all->in[1] / all->in[0];
    unsigned char *to = job->to + index * bytes;
    (void)thread;
    memset(to, job->zero, (size_t)bytes);
    if (y < 0 || y >= w->in[1] || z < 0 || z >= w->in[0])
        return;
    const struct conv_shape *shape = &s->shape;
    const unsigned char *from =
        job->x + image * shape->x_image + z * shape->x_at[0] + y * shape->x_at[1];
    copy_pixels(s, from, to + w->pad_begin[2] * s->pixel);
}

/* ---- planning ---- */

static enum status read_node(conv_words_from *from, const struct kernel_query *q,
                             struct kernel_state *s, struct error *why)
{
    TRY(conv_shape_from(q, CONV_BYTES | CONV_PLANES, &s->shape, why));
    TRY(from(q, &s->words, why));
    const struct rescale *r = &s->words.rescale;
    if (s->shape.window.group != 1)
        return UNSUPPORTED(why, "groups");
    if (!q->fixed[WEIGHTS])
        return UNSUPPORTED(why, "weights are not known beforehand");
    if (r->w_zero != (q->in[WEIGHTS].dtype == DTYPE_U8 ? SIGN : 0))
        return UNSUPPORTED(why, "weights with a zero point of %d", r->w_zero);
    if (r->to != DTYPE_F32 && s->shape.post.count)
        return UNSUPPORTED(why, "steps after the rounding");
    s->flip = q->in[X].dtype == DTYPE_I8 ? SIGN : 0;
    s->zero = (unsigned char)(r->x_zero + s->flip);
    return STATUS_OK;
}

static struct gemm_size size_of(const struct kernel_query *q, const struct kernel_state *s,
                                const struct word_tuning *t)
{
    const struct conv_shape *c = &s->source;
    bool bytes = s->words.rescale.to != DTYPE_F32 && s->words.rescales;
    return (struct gemm_size){.batch = conv_batches(c),
                              .m = conv_rows(c),
                              .n = c->out_channels,
                              .taps = window_taps(&c->window),
                              .k = s->run / WORD,
                              .math = t->math,
                              .narrow = bytes,
                              .vectors = t->vectors,
                              .rows = t->rows,
                              .block_k = 512,
                              .stream = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES && !bytes,
                              .threads = q->threads};
}

static double macs_of(const struct conv_shape *s)
{
    return (double)s->images * (double)s->pixels * (double)s->out_channels * (double)s->channels *
           (double)window_taps(&s->window);
}

enum status conv_words_plan(conv_words_from *from, const struct kernel_query *q, int variant,
                            struct kernel_state *s, struct error *why)
{
    const struct word_tuning *t;
    TRY(read_node(from, q, s, why));
    const struct window *w = &s->shape.window;
    s->copied = s->shape.channels % WORD || s->flip || s->shape.x_channel != 1;
    bool lines = s->copied && w->dilation[SPATIAL_MAX - 1] == 1;
    s->taps = lines ? w->kernel[SPATIAL_MAX - 1] : 1;
    s->pixel = lines ? s->shape.channels : round_up(s->shape.channels, WORD);
    s->run = round_up(s->taps * s->pixel, WORD);
    s->source = s->copied ? shape_of_copy(s) : s->shape;
    word_tunings(1, macs_of(&s->shape), variant, &t);
    struct gemm_size size = size_of(q, s, t);
    s->plan = gemm_plan_for(&size);
    s->batch_dim[0] = conv_batches(&s->shape);
    s->c_batch[0] = s->shape.y_image;
    return STATUS_OK;
}

int conv_words_variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    return word_tunings(1, macs_of(&s->shape), 0, &none);
}

void conv_words_describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", s->copied ? " copied" : "",
             s->plan.size.math == GEMM_BYTES ? " widened" : "");
}

/* Bytes of what follows from a zero point that comes with a launch: starts of sums, padding. */
static size_t late_bytes(const struct kernel_state *s)
{
    size_t columns = (size_t)gemm_bias_floats(&s->plan) * WORD;
    return s->words.x_zero == NONE ? 0 : aligned_bytes(columns) + aligned_bytes((size_t)s->run);
}

size_t conv_words_workspace(const struct kernel_state *s)
{
    return aligned_bytes(copy_bytes(s)) + late_bytes(s) + gemm_workspace(&s->plan);
}

/* ---- weights ---- */

static int64_t depth_of(const struct kernel_state *s)
{
    return window_taps(&s->shape.window) / s->taps * s->run;
}

/* Signed, in the order in which x is read: [channel][tap of the product][its bytes]. */
static void order_weights(const struct kernel_state *s, const unsigned char *weights,
                          unsigned char *to)
{
    const struct conv_shape *c = &s->shape;
    unsigned char flip = s->words.rescale.w_zero ? SIGN : 0;
    int64_t taps = window_taps(&c->window);
    memset(to, 0, (size_t)(c->out_channels * depth_of(s)));
    for (int64_t m = 0; m < c->out_channels; m++, weights += c->w_out, to += depth_of(s))
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < c->channels; k++)
                to[t / s->taps * s->run + t % s->taps * s->pixel + k] =
                    weights[k * c->w_in + t * c->w_tap] ^ flip;
}

static void pack_weights(const struct kernel_query *q, struct kernel_state *s,
                         unsigned char *ordered)
{
    struct gemm_plan whole = s->plan; /* all taps are one */
    order_weights(s, q->fixed[WEIGHTS], ordered);
    whole.size.k *= whole.size.taps;
    whole.size.taps = 1;
    struct gemm_source_words from = {
        .b = ordered, .k = depth_of(s), .row = 1, .column = depth_of(s), .element = 1};
    gemm_pack_words(&whole, &from, 0, s->plan.panels, s->packed, s->sums);
}

/* From what a channel's sums start: less the zero point times its weights. */
static void make_start(const struct kernel_state *s, unsigned char zero, int32_t *start)
{
    for (int64_t n = 0; n < gemm_bias_floats(&s->plan); n++)
        start[n] = (int32_t)(0u - (uint32_t)zero * (uint32_t)s->sums[n]);
}

static void fill(const struct kernel_query *q, struct kernel_state *s, unsigned char *ordered)
{
    size_t columns = (size_t)gemm_bias_floats(&s->plan) * WORD;
    size_t given = (size_t)s->shape.out_channels * WORD;
    pack_weights(q, s, ordered);
    make_start(s, s->zero, s->start);
    memset(s->zeros, s->zero, (size_t)s->run);
    memset(s->scale, 0, columns);
    memset(s->offset, 0, columns);
    if (!s->words.rescales)
        return;
    memcpy(s->scale, q->fixed[SCALE], given);
    memcpy(s->offset, q->fixed[OFFSET], given);
}

enum status conv_words_prepare(const struct kernel_query *q, struct kernel_state *s,
                               size_t *packed_bytes, struct error *err)
{
    size_t packed = (size_t)gemm_packed_floats(&s->plan) * WORD, zeros = (size_t)s->run;
    size_t columns = (size_t)gemm_bias_floats(&s->plan) * WORD;
    s->packed = memory_alloc(packed);
    s->sums = memory_alloc(columns);
    s->start = memory_alloc(columns);
    s->scale = memory_alloc(columns);
    s->offset = memory_alloc(columns);
    s->zeros = memory_alloc(zeros);
    unsigned char *ordered = memory_alloc((size_t)(s->shape.out_channels * depth_of(s)));
    bool fine = s->packed && s->sums && s->start && s->scale && s->offset && s->zeros && ordered;
    if (fine)
        fill(q, s, ordered);
    memory_free(ordered);
    *packed_bytes = packed + 4 * columns + zeros;
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- launch ---- */

/* What zero points decide. */
struct zeros {
    unsigned char zero;
    const int32_t *start;
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
    unsigned char *row =
        (unsigned char *)late + aligned_bytes((size_t)gemm_bias_floats(&s->plan) * WORD);
    make_start(s, zero, start);
    memset(row, zero, (size_t)s->run);
    return (struct zeros){zero, start, row};
}

void conv_words_launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const void *x = args->in[X];
    struct zeros zeros = zeros_of(s, args);
    if (s->copied) {
        struct copying job = {s, x, args->workspace, zeros.zero};
        pool_run(args->pool, copy_lines(s), copy_line, &job);
        x = args->workspace;
    }
    struct conv_source source = conv_source_of(&s->source, 1, x, zeros.row);
    struct gemm_rescale rescale = {.scale = s->scale,
                                   .offset = s->offset,
                                   .low = s->words.rescale.low,
                                   .high = s->words.rescale.high,
                                   .zero = s->words.rescale.zero};
    struct gemm_call call = {.rows = conv_source_rows,
                             .source = &source,
                             .b = s->packed,
                             .bias = (const float *)(const void *)zeros.start,
                             .rescale = s->words.rescales ? &rescale : NULL,
                             .c = args->out[0],
                             .c_row = s->shape.y_pixel,
                             .post = &s->shape.post,
                             .in = args->in,
                             .batch_rank = 1,
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
