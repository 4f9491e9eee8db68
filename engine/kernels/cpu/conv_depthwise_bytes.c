/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvBytes and ConvInteger of one channel per group, channels-last: vectors over channels, four at
 * a time, the window's taps inside. Bytes become floats, in which products and sums of bytes are
 * exact as long as there are no more than 2^24 / (255 x 128) of them; padding adds nothing and is
 * cut off the loops. */
#include <string.h>

#include "base/memory.h"
#include "engine/kernels/lib/conv_shape.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd_dot.h"
#include "engine/ops/family/rescale.h"

enum { TAPS_MAX = 512, AT_ONCE = 4, WEIGHTS = 1, SCALE, OFFSET, X_ZERO = 2, W_ZERO = 3 };

struct kernel_state {
    struct conv_shape shape;
    struct rescale rescale;
    bool is_signed;
    bool sums;      /* are the result, as i32: of ConvInteger */
    int x_zero;     /* input whose number comes with each launch; NONE: rescale.x_zero */
    float *weights; /* [taps][channels], then scale and offset, rows padded to whole vectors */
    int64_t row;    /* floats of a row */
};

struct job {
    const struct kernel_state *state;
    const uint8_t *x;
    char *y;
    int32_t zero; /* of x */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->rescale = rescale_of(q->node);
    TRY(conv_shape_from(q, CONV_BYTES, &s->shape, why));
    if (s->shape.group_in != 1 || s->shape.group_out != 1)
        return UNSUPPORTED(why, "not depthwise");
    s->sums = strcmp(q->node->op->name, "ConvInteger") == 0;
    s->x_zero = s->sums && query_in(q, X_ZERO) ? X_ZERO : NONE;
    for (int k = WEIGHTS; k < q->in_count; k++)
        if (query_in(q, k) && k != s->x_zero && !q->fixed[k])
            return UNSUPPORTED(why, "input %d is not known beforehand", k);
    if (s->x_zero != NONE && shape_count(&q->in[X_ZERO].shape) != 1)
        return UNSUPPORTED(why, "several zero points of x");
    if (window_taps(&s->shape.window) > TAPS_MAX || s->shape.post.count)
        return UNSUPPORTED(why, "more than %d taps, or an epilogue", TAPS_MAX);
    s->is_signed = q->in[0].dtype == DTYPE_I8;
    s->row = (s->shape.channels + VL - 1) / VL * VL;
    return STATUS_OK;
}

/* Of the weights of ConvInteger: one for all or one each. */
static int zero_of_channel(const struct kernel_query *q, int64_t channel)
{
    const struct desc *desc = &q->in[W_ZERO];
    uint8_t zero =
        ((const uint8_t *)q->fixed[W_ZERO])[shape_count(&desc->shape) == 1 ? 0 : channel];
    return desc->dtype == DTYPE_I8 ? (int8_t)zero : zero;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    const struct conv_shape *c = &s->shape;
    int64_t taps = window_taps(&c->window);
    const uint8_t *from = q->fixed[WEIGHTS];
    bool is_signed = q->in[WEIGHTS].dtype == DTYPE_I8;
    size_t bytes = (size_t)((taps + 2) * s->row) * sizeof(float);
    const struct desc *zeros = s->sums ? query_in(q, W_ZERO) : NULL;
    s->weights = memory_alloc(bytes);
    if (!s->weights)
        return FAIL_NO_MEMORY(err);
    memset(s->weights, 0, bytes);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t m = 0; m < c->channels; m++) {
            uint8_t w = from[m * c->w_out + t * c->w_tap];
            int code = is_signed ? (int8_t)w : w, zero = s->rescale.w_zero;
            if (zeros)
                zero = zero_of_channel(q, m);
            s->weights[t * s->row + m] = (float)(code - zero);
        }
    *packed_bytes = bytes;
    if (s->sums)
        return STATUS_OK;
    float *factors = s->weights + taps * s->row;
    memcpy(factors, q->fixed[SCALE], (size_t)c->channels * sizeof(float));
    memcpy(factors + s->row, q->fixed[OFFSET], (size_t)c->channels * sizeof(float));
    return STATUS_OK;
}

/* ---- a position ---- */

/* Taps of an output position that lie inside the image, and where tap 0 reads. */
struct position {
    const struct pool_span *spans[SPATIAL_MAX];
    const uint8_t *x;
    char *y;
    int32_t zero; /* of x */
};

SIMD_INLINE void finish(const struct kernel_state *s, const struct position *p, int64_t c,
                        int64_t count, vf sum)
{
    const float *factors = s->weights + window_taps(&s->shape.window) * s->row + c;
    if (s->sums) {
        vf_store_m((float *)(void *)p->y + c, vm_first(count), vf_bits(vi_from_vf(sum)));
        return;
    }
    vf y = vf_add(vf_mul(sum, vf_load(factors)), vf_load(factors + s->row));
    y = vf_min(vf_max(y, vf_set1(s->rescale.low)), vf_set1(s->rescale.high));
    if (s->rescale.to == DTYPE_F32)
        vf_store_m((float *)(void *)p->y + c, vm_first(count), y);
    else
        vi_store_bytes((uint8_t *)p->y + c, count, vi_add(vi_from_vf(y), vi_set1(s->rescale.zero)));
}

/* Channels [c, c + channels) as `count` vectors, a constant. */
SIMD_INLINE void sum_taps(const struct kernel_state *s, const struct position *p, int64_t c,
                          int64_t channels, int count, bool is_signed)
{
    const struct conv_shape *shape = &s->shape;
    const struct window *w = &shape->window;
    vi zero = vi_set1(p->zero);
    vf sums[AT_ONCE];
    for (int v = 0; v < count; v++)
        sums[v] = vf_zero();
    for (int64_t a = p->spans[0]->first; a < p->spans[0]->last; a++)
        for (int64_t b = p->spans[1]->first; b < p->spans[1]->last; b++)
            for (int64_t e = p->spans[2]->first; e < p->spans[2]->last; e++) {
                const uint8_t *x = p->x + c + a * w->dilation[0] * shape->x_at[0] +
                                   b * w->dilation[1] * shape->x_at[1] +
                                   e * w->dilation[2] * shape->x_at[2];
                const float *weights =
                    s->weights + ((a * w->kernel[1] + b) * w->kernel[2] + e) * s->row + c;
                for (int v = 0; v < count; v++) {
                    int64_t left = channels - v * VL;
                    vi codes =
                        is_signed ? vi_load_i8(x + v * VL, left) : vi_load_u8(x + v * VL, left);
                    sums[v] =
                        vf_fma(vf_from_vi(vi_sub(codes, zero)), vf_load(weights + v * VL), sums[v]);
                }
            }
    for (int v = 0; v < count; v++)
        finish(s, p, c + v * VL, channels - v * VL, sums[v]);
}

SIMD_INLINE void run_position(const struct kernel_state *s, const struct position *p,
                              bool is_signed)
{
    int64_t c = 0, channels = s->shape.channels;
    for (; c + AT_ONCE * VL <= channels; c += AT_ONCE * VL)
        sum_taps(s, p, c, AT_ONCE * VL, AT_ONCE, is_signed);
    for (; c < channels; c += VL)
        sum_taps(s, p, c, channels - c, 1, is_signed);
}

/* One line of output positions. */
static void run_line(void *context, int64_t line, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct conv_shape *c = &s->shape;
    const struct window *w = &c->window;
    size_t element = s->sums || s->rescale.to == DTYPE_F32 ? sizeof(float) : 1;
    struct pool_row row = pool_row_of(w, line);
    int64_t image = line / (w->out[0] * w->out[1]);
    int64_t z = line / w->out[1] % w->out[0], y = line % w->out[1];
    char *to = job->y + (size_t)(image * c->y_image + z * c->y_at[0] + y * c->y_at[1]) * element;
    const uint8_t *from =
        job->x + image * c->x_image + row.slices.at * c->x_at[0] + row.rows.at * c->x_at[1];
    (void)thread;
    for (int64_t o = 0; o < w->out[2]; o++) {
        struct pool_span columns = pool_span_of(w, 2, o);
        struct position p = {.spans = {&row.slices, &row.rows, &columns},
                             .x = from + columns.at * c->x_at[2],
                             .y = to + (size_t)(o * c->y_pixel) * element,
                             .zero = job->zero};
        if (s->is_signed)
            run_position(s, &p, true);
        else
            run_position(s, &p, false);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const struct window *w = &s->shape.window;
    struct job job = {s, args->in[0], args->out[0], s->rescale.x_zero};
    if (s->x_zero != NONE) {
        const uint8_t *zero = args->in[s->x_zero];
        job.zero = s->is_signed ? (int8_t)*zero : *zero;
    }
    pool_run(args->pool, s->shape.images * w->out[0] * w->out[1], run_line, &job);
}

static void release(struct kernel_state *s)
{
    memory_free(s->weights);
}

REGISTER_KERNEL(conv_depthwise_bytes) = {
    NATIVE(conv_depthwise_bytes),
    .ops = OPS("ConvBytes", "ConvInteger"),
    .packs = 1u << WEIGHTS,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
