/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvBytes as an implicit matrix product of words of four channels (see conv_igemm.c): unsigned
 * bytes of x times signed ones of the weights, AVX512-VNNI or AVX-VNNI where the CPU has it. The
 * zero point of x is in the number from which the sums of a channel start, and padding reads a
 * pixel of zero points. What is not unsigned, has no whole words or comes in planes is copied
 * first, with its padding: then a line of taps lies in memory as one, and a convolution of 7 x 7
 * over 3 channels reads 7 runs of 21 bytes, with three more that meet zeros among the weights. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/conv_source.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/family/rescale.h"

enum { WORD = 4, SIGN = 128, X = 0, WEIGHTS, SCALE, OFFSET };

struct kernel_state {
    struct conv_shape shape;  /* of the node */
    struct conv_shape source; /* what rows are read from: x, or its copy without padding */
    struct rescale rescale;
    struct gemm_plan plan;
    bool copied;
    int64_t pixel;      /* bytes from one to the next */
    int64_t taps, run;  /* how many are one of the product, and its bytes: whole words */
    unsigned char flip; /* what makes x unsigned */
    unsigned char zero; /* x's zero point then */
    float *packed, *scale, *offset;
    int32_t *start;
    unsigned char *zeros;
    int64_t batch_dim[1], c_batch[1];
};

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
    unsigned char *to;
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
    memset(to, s->zero, (size_t)bytes);
    if (y < 0 || y >= w->in[1] || z < 0 || z >= w->in[0])
        return;
    const struct conv_shape *shape = &s->shape;
    const unsigned char *from =
        job->x + image * shape->x_image + z * shape->x_at[0] + y * shape->x_at[1];
    copy_pixels(s, from, to + w->pad_begin[2] * s->pixel);
}

/* ---- planning ---- */

static enum status read_node(const struct kernel_query *q, struct kernel_state *s,
                             struct error *why)
{
    struct rescale *r = &s->rescale;
    *r = rescale_of(q->node);
    TRY(conv_shape_from(q, CONV_BYTES | CONV_PLANES, &s->shape, why));
    for (int k = WEIGHTS; k <= OFFSET; k++)
        if (!q->fixed[k])
            return UNSUPPORTED(why, "input %d is not known beforehand", k);
    if (s->shape.window.group != 1)
        return UNSUPPORTED(why, "groups");
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
    bool bytes = s->rescale.to != DTYPE_F32;
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

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct word_tuning *t;
    TRY(read_node(q, s, why));
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

static int variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    return word_tunings(1, macs_of(&s->shape), 0, &none);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", s->copied ? " copied" : "",
             s->plan.size.math == GEMM_BYTES ? " widened" : "");
}

static size_t workspace(const struct kernel_state *s)
{
    return aligned_bytes(copy_bytes(s)) + gemm_workspace(&s->plan);
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
    unsigned char flip = s->rescale.w_zero ? SIGN : 0;
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
    gemm_pack_words(&whole, &from, 0, s->plan.panels, s->packed, s->start);
    for (int64_t n = 0; n < gemm_bias_floats(&s->plan); n++)
        s->start[n] = (int32_t)(0u - (uint32_t)s->zero * (uint32_t)s->start[n]);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    size_t packed = (size_t)gemm_packed_floats(&s->plan) * WORD, zeros = (size_t)s->run;
    size_t columns = (size_t)gemm_bias_floats(&s->plan) * WORD;
    size_t channels = (size_t)s->shape.out_channels;
    s->packed = memory_alloc(packed);
    s->start = memory_alloc(columns);
    s->scale = memory_alloc(columns);
    s->offset = memory_alloc(columns);
    s->zeros = memory_alloc(zeros);
    unsigned char *ordered = memory_alloc(channels * (size_t)depth_of(s));
    bool fine = s->packed && s->start && s->scale && s->offset && s->zeros && ordered;
    if (fine) {
        pack_weights(q, s, ordered);
        memset(s->scale, 0, columns);
        memset(s->offset, 0, columns);
        memcpy(s->scale, q->fixed[SCALE], channels * sizeof(float));
        memcpy(s->offset, q->fixed[OFFSET], channels * sizeof(float));
        memset(s->zeros, s->zero, zeros);
    }
    memory_free(ordered);
    *packed_bytes = packed + 3 * columns + zeros;
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const void *x = args->in[X];
    if (s->copied) {
        struct copying job = {s, x, args->workspace};
        pool_run(args->pool, copy_lines(s), copy_line, &job);
        x = args->workspace;
    }
    struct conv_source source = conv_source_of(&s->source, 1, x, s->zeros);
    struct gemm_rescale rescale = {.scale = s->scale,
                                   .offset = s->offset,
                                   .low = s->rescale.low,
                                   .high = s->rescale.high,
                                   .zero = s->rescale.zero};
    struct gemm_call call = {.rows = conv_source_rows,
                             .source = &source,
                             .b = s->packed,
                             .bias = (const float *)(const void *)s->start,
                             .rescale = &rescale,
                             .c = args->out[0],
                             .c_row = s->shape.y_pixel,
                             .post = &s->shape.post,
                             .in = args->in,
                             .batch_rank = 1,
                             .batch_dim = s->batch_dim,
                             .c_batch = s->c_batch,
                             .workspace = (char *)args->workspace + aligned_bytes(copy_bytes(s))};
    gemm_run(&s->plan, &call, args->pool);
}

static void release(struct kernel_state *s)
{
    memory_free(s->packed);
    memory_free(s->start);
    memory_free(s->scale);
    memory_free(s->offset);
    memory_free(s->zeros);
}

REGISTER_KERNEL(conv_bytes) = {
    NATIVE(conv_bytes),
    .ops = OPS("ConvBytes"),
    .packs = 1u << WEIGHTS | 1u << SCALE | 1u << OFFSET,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
