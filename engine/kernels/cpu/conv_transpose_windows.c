/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvTranspose, channels-last, any window, groups, weights that may change: the gradient of a
 * convolution by its input. With stride s the results at positions u, u + s, u + 2 s ... read the
 * same taps, each a fixed number of pixels away: a "phase", which is a convolution of stride 1 by
 * some of the taps and so an implicit matrix product (conv_igemm.c). Every tap belongs to one
 * phase, and no product with zeros is computed. The rows of a phase are computed side by side for a
 * few images at a time, and then put where they belong, a stride apart; what no tap reaches is
 * filled with the bias. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/ops/lib/window.h"

enum { X, WEIGHTS, BIAS };
enum { PHASES_MAX = 16, ROWS_WANTED = 384 };

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

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t images, channels, out_channels, group_in, group_out, taps;
    int64_t round; /* images at a time */
    int phases;
    struct conv_phase phase[PHASES_MAX];
    bool has_bias, changing;
    int64_t row_floats; /* of the largest phase's results in a round; 0: put in place at once */
    int64_t packed_floats, bias_row;
    size_t gemm_bytes;
    float *packed; /* NULL: in the workspace */
    float *bias;   /* NULL: none */
    float *zeros;
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

/* The fewest images that make products worth while; a divisor of all. */
static int64_t round_of(const struct kernel_state *s, int threads)
{
    int64_t rows = 1;
    for (int k = 0; k < s->phases; k++)
        rows = s->phase[k].rows > rows ? s->phase[k].rows : rows;
    int64_t round = divide_up((int64_t)ROWS_WANTED * threads, rows);
    round = round < s->images ? round : s->images;
    while (s->images % round)
        round++;
    return round;
}

static void plan_phases(struct kernel_state *s, int threads, int variant)
{
    int64_t largest = 0;
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
                                 .k = s->group_in,
                                 .threads = threads};
        int count = gemm_variant_count(&size, s->channels, false);
        p->plan = gemm_variant(&size, s->channels, false, variant < count ? variant : count - 1);
        p->packed = s->packed_floats;
        s->packed_floats += gemm_packed_floats(&p->plan) * s->w.group;
        largest = size.m > largest ? size.m : largest;
        size_t bytes = gemm_workspace(&p->plan);
        s->gemm_bytes = bytes > s->gemm_bytes ? bytes : s->gemm_bytes;
        int64_t row = gemm_bias_floats(&p->plan);
        s->bias_row = row > s->bias_row ? row : s->bias_row;
    }
    const int64_t *stride = s->w.stride;
    bool apart = stride[0] * stride[1] * stride[2] > 1;
    s->row_floats = apart ? (largest * s->out_channels + 15) / 16 * 16 : 0;
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
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
    s->has_bias = q->node->op_inputs > BIAS && query_in(q, BIAS);
    s->changing = !query_fixed(q, WEIGHTS) || (s->has_bias && !query_fixed(q, BIAS));
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
    return p->taps ? gemm_variant_count(&p->plan.size, s->channels, false) : 1;
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
    return s->gemm_bytes + (size_t)s->row_floats * sizeof(float) +
           (s->changing ? weight_bytes(s) : 0);
}

static float *packed_weights(const struct kernel_state *s, const struct kernel_args *args)
{
    size_t before = s->gemm_bytes + (size_t)s->row_floats * sizeof(float);
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + before);
}

static void release(struct kernel_state *s)
{
    free(s->packed);
    free(s->bias);
    free(s->zeros);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    size_t weights = s->changing ? 0 : weight_bytes(s);
    size_t bias = s->has_bias ? (size_t)(s->w.group * s->bias_row) * sizeof(float) : 0;
    size_t zeros = (size_t)(s->group_in + VL) * sizeof(float);
    s->packed = weights ? gemm_alloc(weights) : NULL;
    s->bias = bias ? gemm_alloc(bias) : NULL;
    s->zeros = gemm_alloc(zeros);
    if ((weights && !s->packed) || (bias && !s->bias) || !s->zeros)
        return FAIL_NO_MEMORY(err);
    if (bias)
        memset(s->bias, 0, bias);
    memset(s->zeros, 0, zeros);
    *packed_bytes = weights + bias + zeros;
    return STATUS_OK;
}

/* ---- packing ---- */

struct packing {
    const struct kernel_state *state;
    const float *weights;
    float *packed;
};

/* Input channel k of a group through one tap, in the place that gemm.h gives it. */
static void pack_tap(const struct packing *job, const struct conv_phase *p, int64_t group,
                     int64_t k, const int64_t at[SPATIAL_MAX])
{
    const struct kernel_state *s = job->state;
    const struct side *side = p->side;
    int64_t full = (int64_t)p->plan.size.vectors * VL, n = s->group_out, taps = s->taps;
    int64_t tap = 0;
    for (int d = 0; d < SPATIAL_MAX; d++)
        tap = tap * s->w.kernel[d] + side[d].tap + at[d] * side[d].tap_step;
    int64_t row = ((at[0] * side[1].taps + at[1]) * side[2].taps + at[2]) * s->group_in + k;
    const float *from = job->weights + (group * s->group_in + k) * n * taps + tap;
    float *to = job->packed + p->packed + group * gemm_packed_floats(&p->plan);
    for (int64_t panel = 0; panel < p->plan.panels; panel++) {
        int64_t width = gemm_panel_vectors(&p->plan, panel) * VL, first = panel * full;
        int64_t count = n - first < width ? n - first : width;
        float *line = to + first * p->taps * s->group_in + row * width;
        for (int64_t c = 0; c < count; c++)
            line[c] = from[(first + c) * taps];
        for (int64_t c = count; c < width; c++)
            line[c] = 0;
    }
}

/* All taps of one input channel, whose weights lie together. */
static void pack_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct packing *job = context;
    const struct kernel_state *s = job->state;
    for (int k = 0; k < s->phases; k++) {
        const struct conv_phase *p = &s->phase[k];
        for (int64_t t = 0; t < p->taps; t++) {
            int64_t rest = t / p->side[2].taps;
            int64_t at[SPATIAL_MAX] = {rest / p->side[1].taps, rest % p->side[1].taps,
                                       t % p->side[2].taps};
            pack_tap(job, p, channel / s->group_in, channel % s->group_in, at);
        }
    }
}

static void pack(struct kernel_state *s, const struct kernel_args *args)
{
    struct packing job = {s, args->in[WEIGHTS], packed_weights(s, args)};
    pool_run(args->pool, s->channels, pack_channel, &job);
    for (int64_t g = 0; s->bias && g < s->w.group; g++)
        memcpy(s->bias + g * s->bias_row, (const float *)args->in[BIAS] + g * s->group_out,
               (size_t)s->group_out * sizeof(float));
}

/* ---- products ---- */

struct source {
    const struct kernel_state *state;
    const struct conv_phase *phase;
    const float *x;
    float *y;
    int64_t image;     /* the round's first */
    const float *rows; /* of results */
};

/* Addresses of the pixels that one result reads, one per tap. */
static void point_taps(const struct source *from, const float *image, const int64_t at[SPATIAL_MAX],
                       const float **to, int64_t step)
{
    const struct kernel_state *s = from->state;
    const struct side *side = from->phase->side;
    const int64_t *in = s->w.in;
    int64_t z = at[0] + side[0].shift;
    for (int64_t a = 0; a < side[0].taps; a++, z -= side[0].pixels) {
        int64_t y = at[1] + side[1].shift;
        for (int64_t b = 0; b < side[1].taps; b++, y -= side[1].pixels) {
            int64_t x = at[2] + side[2].shift;
            bool inside = (uint64_t)z < (uint64_t)in[0] && (uint64_t)y < (uint64_t)in[1];
            for (int64_t c = 0; c < side[2].taps; c++, x -= side[2].pixels, to += step)
                *to = inside && (uint64_t)x < (uint64_t)in[2]
                          ? image + ((z * in[1] + y) * in[2] + x) * s->channels
                          : s->zeros;
        }
    }
}

static void rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct source *from = wanted->source;
    const struct conv_phase *p = from->phase;
    const struct kernel_state *s = from->state;
    int64_t at[SPATIAL_MAX], image = from->image + wanted->row / p->rows;
    int64_t left = wanted->row % p->rows, plane = window_in_count(&s->w) * s->channels;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        at[d] = left % p->side[d].count;
        left /= p->side[d].count;
    }
    const float *x = from->x + wanted->batch * s->group_in;
    for (int64_t m = 0; m < wanted->count; m++) {
        point_taps(from, x + image * plane, at, to + m, step);
        int d = SPATIAL_MAX - 1;
        while (d >= 0 && ++at[d] == p->side[d].count)
            at[d--] = 0;
        image += d < 0;
    }
}

/* A line of results of a phase, spread over a line of y. Without taps they are the bias. */
static void spread_line(void *context, int64_t line, int thread)
{
    (void)thread;
    const struct source *job = context;
    const struct kernel_state *s = job->state;
    const struct side *side = job->phase->side;
    int64_t c = s->out_channels, count = side[2].count, rest = line / side[1].count;
    int64_t row = side[1].first + line % side[1].count * s->w.stride[1];
    int64_t slice = side[0].first + rest % side[0].count * s->w.stride[0];
    int64_t image = job->image + rest / side[0].count;
    float *y =
        job->y +
        (((image * s->w.out[0] + slice) * s->w.out[1] + row) * s->w.out[2] + side[2].first) * c;
    const float *from = job->rows + line * count * c;
    for (int64_t k = 0; k < count; k++, y += s->w.stride[2] * c, from += c) {
        if (job->phase->taps) {
            memcpy(y, from, (size_t)c * sizeof(float));
            continue;
        }
        memset(y, 0, (size_t)c * sizeof(float));
        for (int64_t g = 0; s->bias && g < s->w.group; g++)
            memcpy(y + g * s->group_out, s->bias + g * s->bias_row,
                   (size_t)s->group_out * sizeof(float));
    }
}

static void run_phase(struct source *job, const struct kernel_args *args)
{
    const struct kernel_state *s = job->state;
    const struct conv_phase *p = job->phase;
    bool spread = s->row_floats > 0 || !p->taps;
    float *results = (float *)(void *)((char *)args->workspace + s->gemm_bytes);
    float *direct = job->y + job->image * window_out_count(&s->w) * s->out_channels;
    struct gemm_post none = {0};
    struct gemm_call call = {.rows = rows,
                             .source = job,
                             .b = packed_weights(s, args) + p->packed,
                             .b_batch = gemm_packed_floats(&p->plan),
                             .bias = s->bias,
                             .bias_batch = s->bias_row,
                             .c = spread ? results : direct,
                             .c_row = s->out_channels,
                             .post = &none,
                             .in = args->in,
                             .batch_rank = 1,
                             .batch_dim = &s->w.group,
                             .c_batch = &s->group_out,
                             .workspace = args->workspace};
    if (p->taps)
        gemm_run(&p->plan, &call, args->pool);
    job->rows = results;
    if (spread)
        pool_run(args->pool, s->round * p->side[0].count * p->side[1].count, spread_line, job);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    for (int64_t image = 0; image < s->images; image += s->round)
        for (int k = 0; k < s->phases; k++) {
            struct source job = {.state = s,
                                 .phase = &s->phase[k],
                                 .x = args->in[X],
                                 .y = args->out[0],
                                 .image = image};
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
