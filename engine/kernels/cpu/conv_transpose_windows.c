/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvTranspose, channels-last, any window, groups, weights that may change: the gradient of a
 * convolution by its input. With stride s the results at positions u, u + s, u + 2 s ... read the
 * same taps, each a fixed number of pixels away: a "phase", which is a convolution of stride 1 by
 * some of the taps and so an implicit matrix product (conv_igemm.c). Every tap belongs to one
 * phase, and no product with zeros is computed. The product's rows are written where they belong, a
 * stride apart; what no tap reaches is filled with the bias.
 *
 * Tensors of bf16 are multiplied as words of two channels each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/ops/lib/window.h"

enum { X, WEIGHTS, BIAS };
enum { PHASES_MAX = 16, ROWS_WANTED = 384, PACK_CHANNELS = 16, PACK_COLUMNS = 64 };

/* The results of one phase along one dimension, and the taps that they read. Result j reads pixel
 * j + shift - k * pixels through its k-th tap. */
struct side {
    int64_t first, count;
    int64_t tap, tap_step, taps;
    int64_t shift, pixels;
};

struct conv_phase {
    struct side side[SPATIAL_MAX];
    int64_t taps, rows; /* rows: of one image */
    int64_t packed;     /* floats before its weights */
    struct gemm_plan plan;
};

/* Which phase reads through a tap of the kernel, and how many of its taps come before. */
struct tap_at {
    int phase; /* NONE */
    int64_t index;
};

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t images, channels, out_channels, group_in, group_out, taps;
    bool bf16;       /* all tensors are; else f32 */
    int64_t element; /* bytes of one */
    int64_t depth;   /* of a tap in a product: channels of a group, or words of them */
    int64_t round;   /* images at a time */
    int phases;
    struct conv_phase phase[PHASES_MAX];
    bool has_bias, changing;
    bool apart; /* rows of a phase */
    bool large; /* the result may be written past the caches */
    int64_t packed_floats, bias_row;
    size_t gemm_bytes;
    float *packed; /* NULL: in the workspace */
    float *bias;   /* NULL: none */
    float *zeros;
    struct tap_at *tap_at;
};

/* Results whose position in the uncut image leaves the rest `rest`, divided by the stride. */
static struct side side_of(const struct window *w, int d, int64_t rest)
{
    int64_t s = w->stride[d], pad = w->pad_begin[d];
    int64_t first = pad > rest ? divide_up(pad - rest, s) : 0; /* in strides */
    struct side side = {.first = rest + first * s - pad};
    if (side.first < w->out[d])
        side.count = divide_up(w->out[d] - side.first, s);
    for (int64_t t = w->kernel[d] - 1; t >= 0; t--)
        if ((rest - t * w->dilation[d]) % s == 0) {
            side.tap_step = side.taps++ ? side.tap - t : 0;
            side.tap = t;
        }
    side.pixels = side.tap_step * w->dilation[d] / s;
    side.shift = first + (rest - side.tap * w->dilation[d]) / s;
    return side;
}

static void find_phases(struct kernel_state *s)
{
    const int64_t *stride = s->w.stride;
    int64_t packed = 0;
    for (int64_t k = 0; k < stride[0] * stride[1] * stride[2]; k++) {
        struct conv_phase *p = &s->phase[s->phases];
        *p = (struct conv_phase){.taps = 1, .rows = 1, .packed = packed};
        int64_t left = k;
        for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
            p->side[d] = side_of(&s->w, d, left % stride[d]);
            p->taps *= p->side[d].taps;
            p->rows *= p->side[d].count;
            left /= stride[d];
        }
        s->phases += p->rows > 0;
    }
}

/* The fewest images that make products worth while, a divisor of all: the phases of a round write
 * and read the same lines. */
static int64_t round_of(const struct kernel_state *s, int threads)
{
    int64_t rows = 1;
    for (int k = 0; k < s->phases; k++)
        rows = s->phase[k].rows > rows ? s->phase[k].rows : rows;
    int64_t round = divide_up((int64_t)ROWS_WANTED * threads, rows);
    round = round < s->images && s->phases > 1 ? round : s->images;
    while (s->images % round)
        round++;
    return round;
}

static double macs_of(const struct kernel_state *s)
{
    return (double)s->images * (double)window_in_count(&s->w) * (double)s->channels *
           (double)s->group_out * (double)s->taps;
}

static struct gemm_plan plan_words(const struct kernel_state *s, struct gemm_size size, int variant)
{
    const struct word_tuning *t;
    int count = word_tunings(2, macs_of(s), 0, &t);
    word_tunings(2, macs_of(s), variant < count ? variant : count - 1, &t);
    size.math = t->math;
    size.narrow = 2;
    size.vectors = t->vectors;
    size.rows = t->rows;
    size.block_k = 512;
    size.row_bytes = s->group_in * s->element;
    size.copy = s->group_in % 2 ||
                (size.m >= t->rows && size.k >= 64 && gemm_rows_collide(s->channels / 2, t->rows));
    return gemm_plan_for(&size);
}

static struct gemm_plan plan_floats(const struct kernel_state *s, struct gemm_size size,
                                    int variant)
{
    int count = gemm_variant_count(&size, s->channels, s->large);
    return gemm_variant(&size, s->channels, s->large, variant < count ? variant : count - 1);
}

static void plan_phases(struct kernel_state *s, int threads, int variant)
{
    const int64_t *stride = s->w.stride;
    s->apart = stride[0] * stride[1] * stride[2] > 1;
    s->packed_floats = 0;
    s->gemm_bytes = 0;
    for (int k = 0; k < s->phases; k++) {
        struct conv_phase *p = &s->phase[k];
        if (!p->taps)
            continue;
        struct gemm_size size = {.batch = s->w.group,
                                 .m = s->round * p->rows,
                                 .n = s->group_out,
                                 .taps = p->taps,
                                 .k = s->depth,
                                 .spread = s->apart,
                                 .threads = threads};
        p->plan = s->bf16 ? plan_words(s, size, variant) : plan_floats(s, size, variant);
        p->packed = s->packed_floats;
        s->packed_floats += gemm_packed_floats(&p->plan) * s->w.group;
        size_t bytes = gemm_workspace(&p->plan);
        s->gemm_bytes = larger(s->gemm_bytes, bytes);
        int64_t row = gemm_bias_floats(&p->plan);
        s->bias_row = larger(s->bias_row, row);
    }
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32) && !query_all_dtype(q, DTYPE_BF16))
        return UNSUPPORTED(why, "neither all f32 nor all bf16");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[X]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last images");
    if (!desc_is_plain(&q->in[WEIGHTS]))
        return UNSUPPORTED(why, "weights are not plain");
    if (shape_count(&q->out[0].shape) == 0 || shape_count(&q->in[X].shape) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct window window;
    TRY(check(q, why));
    const int64_t *x = q->in[X].shape.dim, *weights = q->in[WEIGHTS].shape.dim;
    TRY(window_transposed_from_node(q->node, &q->in[X].shape, weights + 2, &window, why));
    s->w = window_to_3d(&window);
    if (s->w.stride[0] * s->w.stride[1] * s->w.stride[2] > PHASES_MAX)
        return UNSUPPORTED(why, "strides that make more than %d phases", PHASES_MAX);
    s->images = x[0];
    s->channels = x[1];
    s->out_channels = q->out[0].shape.dim[1];
    s->group_in = s->channels / s->w.group;
    s->group_out = s->out_channels / s->w.group;
    s->taps = window_taps(&s->w);
    s->bf16 = q->in[X].dtype == DTYPE_BF16;
    s->element = (int64_t)dtype_size(q->in[X].dtype);
    s->depth = s->bf16 ? divide_up(s->group_in, 2) : s->group_in;
    s->has_bias = q->node->op_inputs > BIAS && query_in(q, BIAS);
    s->changing = !query_fixed(q, WEIGHTS) || (s->has_bias && !query_fixed(q, BIAS));
    s->large = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
    find_phases(s);
    s->round = round_of(s, q->threads);
    plan_phases(s, q->threads, variant);
    return STATUS_OK;
}

/* The phase of most work. */
static const struct conv_phase *largest(const struct kernel_state *s)
{
    const struct conv_phase *best = &s->phase[0];
    for (int k = 1; k < s->phases; k++)
        if (s->phase[k].taps * s->phase[k].rows > best->taps * best->rows)
            best = &s->phase[k];
    return best;
}

static int variants(const struct kernel_state *s)
{
    const struct conv_phase *p = largest(s);
    const struct word_tuning *none;
    if (p->taps && s->bf16)
        return word_tunings(2, macs_of(s), 0, &none);
    return p->taps ? gemm_variant_count(&p->plan.size, s->channels, s->large) : 1;
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    char inner[64] = "";
    if (largest(s)->taps)
        gemm_describe(&largest(s)->plan, inner, sizeof(inner));
    snprintf(text, size, "%d phases, %lld images: %s", s->phases, (long long)s->round, inner);
}

static size_t weight_bytes(const struct kernel_state *s)
{
    return (size_t)s->packed_floats * sizeof(float);
}

static size_t workspace(const struct kernel_state *s)
{
    return s->gemm_bytes + (s->changing ? weight_bytes(s) : 0);
}

static float *packed_weights(const struct kernel_state *s, const struct kernel_args *args)
{
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + s->gemm_bytes);
}

static void release(struct kernel_state *s)
{
    memory_free(s->packed);
    memory_free(s->bias);
    memory_free(s->zeros);
    free(s->tap_at);
}

static void find_taps(struct kernel_state *s)
{
    for (int64_t tap = 0; tap < s->taps; tap++)
        s->tap_at[tap].phase = NONE;
    for (int k = 0; k < s->phases; k++) {
        const struct side *side = s->phase[k].side;
        for (int64_t index = 0; index < s->phase[k].taps; index++) {
            int64_t tap = 0, step = 1, left = index;
            for (int d = SPATIAL_MAX - 1; d >= 0; d--, left /= side[d + 1].taps) {
                tap += (side[d].tap + left % side[d].taps * side[d].tap_step) * step;
                step *= s->w.kernel[d];
            }
            s->tap_at[tap] = (struct tap_at){k, index};
        }
    }
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    size_t weights = s->changing ? 0 : weight_bytes(s);
    size_t bias = s->has_bias ? (size_t)(s->w.group * s->bias_row) * sizeof(float) : 0;
    size_t zeros = (size_t)(s->group_in + VL) * sizeof(float);
    s->packed = weights ? memory_alloc(weights) : NULL;
    s->bias = bias ? memory_alloc(bias) : NULL;
    s->zeros = memory_alloc(zeros);
    s->tap_at = calloc((size_t)s->taps, sizeof(*s->tap_at));
    if ((weights && !s->packed) || (bias && !s->bias) || !s->zeros || !s->tap_at)
        return FAIL_NO_MEMORY(err);
    find_taps(s);
    if (bias)
        memset(s->bias, 0, bias);
    memset(s->zeros, 0, zeros);
    *packed_bytes = weights + bias + zeros;
    return STATUS_OK;
}

/* ---- packing ---- */

struct packing {
    const struct kernel_state *state;
    const void *weights;
    float *packed;
};

/* Where gemm.h wants a vector of output channels, from channel n on, of input channel (or word) k
 * of a group through one tap; *next floats from there that of the next one. */
static float *place_of_weights(const struct packing *job, int64_t tap, int64_t group, int64_t k,
                               int64_t n, int64_t *next)
{
    const struct kernel_state *s = job->state;
    const struct conv_phase *p = &s->phase[s->tap_at[tap].phase];
    int64_t depth = p->taps * s->depth, row = s->tap_at[tap].index * s->depth + k;
    int64_t full = (int64_t)p->plan.size.vectors * VL, panel = n / full;
    *next = gemm_panel_vectors(&p->plan, panel) * VL;
    return job->packed + p->packed + group * gemm_packed_floats(&p->plan) + panel * full * depth +
           row * *next + n % full;
}

/* A vector of output channels through `count` taps, VL at most, of PACK_CHANNELS input channels. */
static void pack_vectors(const struct packing *job, int64_t group, int64_t k, int64_t n,
                         int64_t tap, int64_t count)
{
    const struct kernel_state *s = job->state;
    int64_t columns = smaller(s->group_out - n, VL), next[VL] = {0};
    float unread[VL], *to[VL] = {unread};
    for (int64_t t = 0; t < count; t++) {
        bool is_read = s->tap_at[tap + t].phase != NONE;
        next[t] = 0;
        to[t] = is_read ? place_of_weights(job, tap + t, group, k, n, &next[t]) : unread;
    }
    for (int64_t end = smaller(k + PACK_CHANNELS, s->group_in); k < end; k++) {
        int64_t row = group * s->group_in + k;
        turn_columns((const float *)job->weights + (row * s->group_out + n) * s->taps + tap,
                     s->taps, to, count, columns);
        for (int64_t t = 0; t < count; t++)
            to[t] += next[t];
    }
}

/* An input channel of a kernel of one tap. */
static void pack_row(const struct packing *job, int64_t group, int64_t k)
{
    const struct kernel_state *s = job->state;
    const float *from = (const float *)job->weights + (group * s->group_in + k) * s->group_out;
    int64_t step = (int64_t)s->phase[s->tap_at[0].phase].plan.size.vectors * VL, next;
    for (int64_t first = 0; first < s->group_out; first += step) {
        float *to = place_of_weights(job, 0, group, k, first, &next);
        for (int64_t n = 0; n < next; n += VL)
            vf_store(to + n, vf_load_m(from + first + n, vm_first(s->group_out - first - n)));
    }
}

/* Words of up to VL output channels through one tap, of PACK_CHANNELS input channels. */
static void pack_words(const struct packing *job, int64_t group, int64_t k, int64_t n, int64_t tap)
{
    const struct kernel_state *s = job->state;
    int64_t columns = smaller(s->group_out - n, VL), next, line = s->group_out * s->taps;
    if (s->tap_at[tap].phase == NONE)
        return;
    float *to = place_of_weights(job, tap, group, k / 2, n, &next);
    for (int64_t end = smaller(k + PACK_CHANNELS, s->group_in); k < end; k += 2, to += next) {
        int64_t row = group * s->group_in + k;
        const uint16_t *from =
            (const uint16_t *)job->weights + (row * s->group_out + n) * s->taps + tap;
        uint32_t words[VL] = {0};
        for (int64_t lane = 0; lane < columns; lane++, from += s->taps)
            words[lane] = from[0] | (k + 1 < s->group_in ? (uint32_t)from[line] << 16 : 0);
        memcpy(to, words, sizeof(words));
    }
}

/* PACK_CHANNELS input channels, so that what is read and what is written lies in few places. */
static void pack_block(void *context, int64_t task, int thread)
{
    (void)thread;
    const struct packing *job = context;
    const struct kernel_state *s = job->state;
    int64_t columns = divide_up(s->group_out, PACK_COLUMNS);
    int64_t blocks = divide_up(s->group_in, PACK_CHANNELS);
    int64_t first = task % columns * PACK_COLUMNS,
            end = smaller(first + PACK_COLUMNS, s->group_out);
    int64_t k = task / columns % blocks * PACK_CHANNELS, group = task / columns / blocks;
    for (int64_t n = first; n < end; n += VL)
        for (int64_t tap = 0; s->bf16 && tap < s->taps; tap++)
            pack_words(job, group, k, n, tap);
    for (int64_t n = first; n < end && !s->bf16; n += VL)
        for (int64_t tap = 0; tap < s->taps; tap += VL)
            pack_vectors(job, group, k, n, tap, smaller(s->taps - tap, VL));
}

static void pack_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct packing *job = context;
    pack_row(job, channel / job->state->group_in, channel % job->state->group_in);
}

static void pack(struct kernel_state *s, const struct kernel_args *args)
{
    struct packing job = {s, args->in[WEIGHTS], packed_weights(s, args)};
    int64_t blocks = divide_up(s->group_in, PACK_CHANNELS) * divide_up(s->group_out, PACK_COLUMNS);
    if (s->taps > 1 || s->bf16)
        pool_run(args->pool, s->w.group * blocks, pack_block, &job);
    else if (s->tap_at[0].phase != NONE)
        pool_run(args->pool, s->channels, pack_channel, &job);
    for (int64_t n = 0; s->bias && n < s->out_channels; n++)
        s->bias[n / s->group_out * s->bias_row + n % s->group_out] =
            float_read(args->in[BIAS], n, s->bf16);
}

/* ---- products ---- */

struct source {
    const struct kernel_state *state;
    const struct conv_phase *phase;
    const char *x; /* the round's first image */
    char *y;
};

/* A result of a phase, by its image and its number along each dimension. */
struct place {
    int64_t image, at[SPATIAL_MAX];
};

static struct place place_of(const struct conv_phase *p, int64_t row)
{
    struct place place = {.image = row / p->rows};
    int64_t left = row % p->rows;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        place.at[d] = left % p->side[d].count;
        left /= p->side[d].count;
    }
    return place;
}

/* To the first result of the next line. */
static void next_line(const struct conv_phase *p, struct place *place)
{
    int d = SPATIAL_MAX - 2;
    place->at[SPATIAL_MAX - 1] = 0;
    while (d >= 0 && ++place->at[d] == p->side[d].count)
        place->at[d--] = 0;
    place->image += d < 0;
}

/* Addresses of the pixels that `run` results of a line read, one per tap. */
static void point_line(const struct source *from, const char *image, const struct place *place,
                       int64_t run, const float **to, int64_t step)
{
    const struct kernel_state *s = from->state;
    const struct side *side = from->phase->side;
    const int64_t *in = s->w.in;
    int64_t pixel = s->channels * s->element;
    int64_t z = place->at[0] + side[0].shift;
    for (int64_t a = 0; a < side[0].taps; a++, z -= side[0].pixels) {
        int64_t y = place->at[1] + side[1].shift;
        for (int64_t b = 0; b < side[1].taps; b++, y -= side[1].pixels) {
            int64_t x = place->at[2] + side[2].shift;
            bool inside = (uint64_t)z < (uint64_t)in[0] && (uint64_t)y < (uint64_t)in[1];
            const char *line = image + (z * in[1] + y) * in[2] * pixel;
            for (int64_t c = 0; c < side[2].taps; c++, x -= side[2].pixels, to += step)
                for (int64_t m = 0; m < run; m++)
                    to[m] = inside && (uint64_t)(x + m) < (uint64_t)in[2]
                                ? (const float *)(const void *)(line + (x + m) * pixel)
                                : s->zeros;
        }
    }
}

static void rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct source *from = wanted->source;
    const struct kernel_state *s = from->state;
    int64_t plane = window_in_count(&s->w) * s->channels * s->element, count = wanted->count;
    const char *x = from->x + wanted->batch * s->group_in * s->element;
    struct place place = place_of(from->phase, wanted->row);
    while (count > 0) {
        int64_t left = from->phase->side[SPATIAL_MAX - 1].count - place.at[SPATIAL_MAX - 1];
        int64_t run = left < count ? left : count;
        point_line(from, x + place.image * plane, &place, run, to, step);
        next_line(from->phase, &place);
        to += run;
        count -= run;
    }
}

/* Where in y a result lies. */
static int64_t offset_of(const struct kernel_state *s, const struct conv_phase *p,
                         const struct place *place)
{
    int64_t pixel = place->image;
    for (int d = 0; d < SPATIAL_MAX; d++)
        pixel = pixel * s->w.out[d] + p->side[d].first + place->at[d] * s->w.stride[d];
    return pixel * s->out_channels;
}

static void places(const struct gemm_rows *wanted, int64_t *to)
{
    const struct source *from = wanted->source;
    const struct kernel_state *s = from->state;
    struct place place = place_of(from->phase, wanted->row);
    int64_t at = offset_of(s, from->phase, &place), step = s->w.stride[2] * s->out_channels;
    for (int64_t m = 0; m < wanted->count; m++, at += step) {
        to[m] = at;
        if (++place.at[2] < from->phase->side[2].count)
            continue;
        next_line(from->phase, &place);
        at = offset_of(s, from->phase, &place) - step;
    }
}

/* A line of results that no tap reaches. */
static void fill_line(void *context, int64_t line, int thread)
{
    (void)thread;
    const struct source *job = context;
    const struct kernel_state *s = job->state;
    const struct side *side = &job->phase->side[SPATIAL_MAX - 1];
    struct place place = place_of(job->phase, line * side->count);
    float *y = (float *)(void *)job->y + offset_of(s, job->phase, &place);
    bool stream = s->large && !s->bias && s->out_channels % VL == 0 &&
                  (uintptr_t)job->y % (VL * sizeof(float)) == 0;
    for (int64_t k = 0; k < side->count; k++, y += s->w.stride[2] * s->out_channels) {
        for (int64_t c = 0; stream && c < s->out_channels; c += VL)
            vf_stream(y + c, vf_zero());
        if (!stream)
            memset(y, 0, (size_t)s->out_channels * sizeof(float));
        for (int64_t g = 0; s->bias && g < s->w.group; g++)
            memcpy(y + g * s->group_out, s->bias + g * s->bias_row,
                   (size_t)s->group_out * sizeof(float));
    }
    if (stream)
        simd_fence();
}

static void fill_line_bf16(void *context, int64_t line, int thread)
{
    (void)thread;
    const struct source *job = context;
    const struct kernel_state *s = job->state;
    const struct side *side = &job->phase->side[SPATIAL_MAX - 1];
    struct place place = place_of(job->phase, line * side->count);
    uint16_t *y = (uint16_t *)(void *)job->y + offset_of(s, job->phase, &place);
    for (int64_t k = 0; k < side->count; k++, y += s->w.stride[2] * s->out_channels) {
        memset(y, 0, (size_t)s->out_channels * sizeof(*y));
        for (int64_t n = 0; s->bias && n < s->out_channels; n++)
            y[n] = bfloat_from_float(s->bias[n / s->group_out * s->bias_row + n % s->group_out]);
    }
}

static void run_phase(struct source *job, const struct kernel_args *args)
{
    const struct kernel_state *s = job->state;
    const struct conv_phase *p = job->phase;
    struct gemm_post none = {0};
    struct gemm_call call = {.rows = rows,
                             .places = places,
                             .source = job,
                             .b = packed_weights(s, args) + p->packed,
                             .b_batch = gemm_packed_floats(&p->plan),
                             .bias = s->bias,
                             .bias_batch = s->bias_row,
                             .c = job->y,
                             .c_row = s->out_channels,
                             .post = &none,
                             .in = args->in,
                             .batch_rank = 1,
                             .batch_dim = &s->w.group,
                             .c_batch = &s->group_out,
                             .workspace = args->workspace};
    if (p->taps)
        gemm_run(&p->plan, &call, args->pool);
    else
        pool_run(args->pool, s->round * p->rows / p->side[SPATIAL_MAX - 1].count,
                 s->bf16 ? fill_line_bf16 : fill_line, job);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const char *x = args->in[X];
    char *y = args->out[0];
    int64_t x_image = window_in_count(&s->w) * s->channels * s->element;
    int64_t y_image = window_out_count(&s->w) * s->out_channels * s->element;
    for (int64_t image = 0; image < s->images; image += s->round)
        for (int k = 0; k < s->phases; k++) {
            struct source job = {s, &s->phase[k], x + image * x_image, y + image * y_image};
            run_phase(&job, args);
        }
}

REGISTER_KERNEL(conv_transpose_windows) = {
    NATIVE(conv_transpose_windows),
    .ops = OPS("ConvTranspose"),
    .packs = 1u << WEIGHTS | 1u << BIAS,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
