/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvBytes of one channel per group, channels-last, by dot products of bytes: four taps of a
 * channel are a word, made of four rows of channels by three steps of interleaving, which leaves
 * the channels in an order that packing the results into bytes turns back. Where a tap reads
 * padding it reads a row of zero points; the zero point is in what a channel's sum starts from. */
#include "engine/kernels/lib/simd_dot.h"

#include <string.h>

#include "base/memory.h"
#include "engine/kernels/lib/conv_shape.h"
#include "engine/ops/family/rescale.h"

enum { WIDTH = 4 * VL, TAPS_MAX = 64, SIGN = 128, WEIGHTS = 1, SCALE, OFFSET };

/* What WIDTH channels have: a word for each, in the order of words_of_rows. */
struct factors {
    int32_t start[WIDTH];
    float scale[WIDTH], offset[WIDTH];
};

struct kernel_state {
    struct conv_shape shape;
    struct rescale rescale;
    int64_t taps, groups, blocks; /* groups of four taps; blocks of WIDTH channels */
    uint8_t flip, zero;           /* what makes x unsigned, and its zero point then */
    int32_t *words;               /* [blocks][groups][WIDTH] */
    struct factors *factors;      /* [blocks] */
    uint8_t *zeros;               /* a row that padding reads */
};

struct job {
    const struct kernel_state *state;
    const uint8_t *x;
    uint8_t *y;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->rescale = rescale_of(q->node);
    if (!cpu_has_byte_dots())
        return UNSUPPORTED(why, "this CPU multiplies no bytes");
    TRY(conv_shape_from(q, CONV_BYTES, &s->shape, why));
    if (s->shape.group_in != 1 || s->shape.group_out != 1)
        return UNSUPPORTED(why, "not depthwise");
    for (int k = WEIGHTS; k <= OFFSET; k++)
        if (!q->fixed[k])
            return UNSUPPORTED(why, "input %d is not known beforehand", k);
    if (s->rescale.to == DTYPE_F32 || s->shape.post.count)
        return UNSUPPORTED(why, "only results of bytes");
    if (s->rescale.w_zero != (q->in[WEIGHTS].dtype == DTYPE_U8 ? SIGN : 0))
        return UNSUPPORTED(why, "weights with a zero point of %d", s->rescale.w_zero);
    s->taps = window_taps(&s->shape.window);
    if (s->taps > TAPS_MAX)
        return UNSUPPORTED(why, "more than %d taps", TAPS_MAX);
    s->groups = (s->taps + 3) / 4;
    s->blocks = (s->shape.channels + WIDTH - 1) / WIDTH;
    s->flip = q->in[0].dtype == DTYPE_I8 ? SIGN : 0;
    s->zero = (uint8_t)(s->rescale.x_zero + s->flip);
    return STATUS_OK;
}

/* ---- weights ---- */

/* Word `at` of a block: the channel's taps, its start and its factors. */
static void pack_channel(const struct kernel_query *q, const struct kernel_state *s, int64_t block,
                         int at, int64_t channel)
{
    const struct conv_shape *c = &s->shape;
    const uint8_t *from = (const uint8_t *)q->fixed[WEIGHTS] + channel * c->w_out;
    struct factors *factors = &s->factors[block];
    uint8_t flip = s->rescale.w_zero ? SIGN : 0;
    int32_t sum = 0;
    for (int64_t t = 0; t < s->taps; t++) {
        int8_t weight = (int8_t)(from[t * c->w_tap] ^ flip);
        int32_t *word = &s->words[(block * s->groups + t / 4) * WIDTH + at];
        *word = (int32_t)((uint32_t)*word | (uint32_t)(uint8_t)weight << t % 4 * 8);
        sum += weight;
    }
    factors->start[at] = -(int32_t)s->zero * sum;
    factors->scale[at] = ((const float *)q->fixed[SCALE])[channel];
    factors->offset[at] = ((const float *)q->fixed[OFFSET])[channel];
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    size_t words = (size_t)(s->blocks * s->groups * WIDTH) * sizeof(*s->words);
    size_t factors = (size_t)s->blocks * sizeof(*s->factors);
    s->words = memory_alloc(words);
    s->factors = memory_alloc(factors);
    s->zeros = memory_alloc((size_t)s->shape.channels);
    if (!s->words || !s->factors || !s->zeros)
        return FAIL_NO_MEMORY(err);
    memset(s->words, 0, words);
    memset(s->factors, 0, factors);
    memset(s->zeros, s->zero ^ s->flip, (size_t)s->shape.channels);
    for (int64_t b = 0; b < s->blocks; b++)
        for (int at = 0; at < WIDTH; at++) {
            int64_t channel = b * WIDTH + channel_of_word(at / VL, at % VL);
            if (channel < s->shape.channels)
                pack_channel(q, s, b, at, channel);
        }
    *packed_bytes = words + factors + (size_t)s->shape.channels;
    return STATUS_OK;
}

/* ---- a position ---- */

SIMD_INLINE void finish(const struct kernel_state *s, const struct factors *factors, vi sums[4],
                        uint8_t *y, int64_t count)
{
    vf low = vf_set1(s->rescale.low), high = vf_set1(s->rescale.high);
    vi zero = vi_set1(s->rescale.zero);
    for (int r = 0; r < 4; r++) {
        vf scale = vf_load(factors->scale + r * VL), offset = vf_load(factors->offset + r * VL);
        vf value = vf_add(vf_mul(vf_from_vi(sums[r]), scale), offset);
        sums[r] = vi_add(vi_from_vf(vf_min(vf_max(value, low), high)), zero);
    }
    words_store(y, count, sums, s->rescale.to == DTYPE_I8);
}

/* `count` channels from c on, of which WIDTH are a block; taps: where each of them reads. */
SIMD_INLINE void run_block(const struct kernel_state *s, const uint8_t *const *taps, int64_t c,
                           int64_t count, uint8_t *y)
{
    const struct factors *factors = &s->factors[c / WIDTH];
    const int32_t *words = s->words + c / WIDTH * s->groups * WIDTH;
    vi flip = vi_set1((int32_t)(s->flip * 0x01010101U)), sums[4], x[4];
    for (int r = 0; r < 4; r++)
        sums[r] = vi_load(factors->start + r * VL);
    for (int64_t g = 0; g < s->groups; g++, taps += 4, words += WIDTH) {
        for (int k = 0; k < 4; k++)
            x[k] = vi_xor(vi_load_all(taps[k] + c, count), flip);
        vi in_words[4];
        words_of_rows(x[0], x[1], x[2], x[3], in_words);
        for (int r = 0; r < 4; r++)
            sums[r] = vi_dot_bytes(sums[r], in_words[r], vi_load(words + r * VL));
    }
    finish(s, factors, sums, y + c, count);
}

static void run_position(const struct kernel_state *s, const uint8_t *const *taps, uint8_t *y)
{
    int64_t c = 0, channels = s->shape.channels;
    for (; c + WIDTH <= channels; c += WIDTH)
        run_block(s, taps, c, WIDTH, y);
    if (c < channels)
        run_block(s, taps, c, channels - c, y);
}

/* Where the taps of position o of a line read; lines: of each tap's line the address of its pixel
 * 0, NULL where it is padding. */
static void point_taps(const struct kernel_state *s, const uint8_t *const *lines, int64_t o,
                       const uint8_t **taps)
{
    const struct conv_shape *c = &s->shape;
    const struct window *w = &c->window;
    int64_t first = o * w->stride[2] - w->pad_begin[2], count = w->kernel[0] * w->kernel[1];
    for (int64_t l = 0; l < count; l++)
        for (int64_t e = 0; e < w->kernel[2]; e++) {
            int64_t x = first + e * w->dilation[2];
            bool inside = lines[l] && (uint64_t)x < (uint64_t)w->in[2];
            *taps++ = inside ? lines[l] + x * c->x_at[2] : s->zeros;
        }
    for (int64_t t = s->taps; t < 4 * s->groups; t++)
        *taps++ = s->zeros;
}

static void run_line(void *context, int64_t line, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct conv_shape *c = &s->shape;
    const struct window *w = &c->window;
    const uint8_t *lines[TAPS_MAX] = {NULL}, *taps[TAPS_MAX];
    int64_t image = line / (w->out[0] * w->out[1]);
    int64_t z = line / w->out[1] % w->out[0], y = line % w->out[1];
    uint8_t *to = job->y + image * c->y_image + z * c->y_at[0] + y * c->y_at[1];
    (void)thread;
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t in_z = z * w->stride[0] - w->pad_begin[0] + a * w->dilation[0];
            int64_t in_y = y * w->stride[1] - w->pad_begin[1] + b * w->dilation[1];
            bool inside = in_z >= 0 && in_z < w->in[0] && in_y >= 0 && in_y < w->in[1];
            lines[a * w->kernel[1] + b] =
                inside ? job->x + image * c->x_image + in_z * c->x_at[0] + in_y * c->x_at[1] : NULL;
        }
    for (int64_t o = 0; o < w->out[2]; o++) {
        point_taps(s, lines, o, taps);
        run_position(s, taps, to + o * c->y_pixel);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const struct window *w = &s->shape.window;
    struct job job = {s, args->in[0], args->out[0]};
    pool_run(args->pool, s->shape.images * w->out[0] * w->out[1], run_line, &job);
}

static void release(struct kernel_state *s)
{
    memory_free(s->words);
    memory_free(s->factors);
    memory_free(s->zeros);
}

REGISTER_KERNEL(conv_depthwise_dots) = {
    NATIVE(conv_depthwise_dots),
    .ops = OPS("ConvBytes"),
    .packs = 1u << WEIGHTS | 1u << SCALE | 1u << OFFSET,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
