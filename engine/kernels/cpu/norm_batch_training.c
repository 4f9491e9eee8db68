/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalization in training: mean and variance of each channel of the batch, the running ones,
 * then y = act(x factor + shift).
 *
 * Channels-last: x is read once for both moments. A tile of rows takes its first row off all others
 * and sums differences and their squares, eight rows at a time, so that neither a mean far from
 * zero nor a long sum costs accuracy; tiles join in double. They do not depend on how many threads
 * there are, and neither does the result. The second reading begins with the tiles that were read
 * last and may still lie in a cache.
 *
 * Plain: a channel is a tile; its planes are read for the mean, for the variance, and for y.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_moments.h"
#include "engine/kernels/lib/simd_math.h"

enum {
    TILE_ELEMENTS = 16384,
    TILE_ROWS_MIN = 32, /* so that the tiles' moments stay small beside x */
    GROUP = 8,          /* rows that are summed in registers */
    CHANNEL_BLOCK = 64  /* channels whose moments are joined at a time */
};

enum { MEAN, SQUARES, MOMENTS };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x, *scale, *bias, *mean_before, *variance_before;
    float *y, *mean_after, *variance_after, *mean, *inverse; /* all but y may be NULL */
    float *factor, *shift;                                   /* per channel */
    float *parts;                                            /* [tiles, MOMENTS, channels] */
    int64_t images, channels, plane, rows, tile_rows, tiles;
    float epsilon, momentum;
    enum function act;
    float a, b;
    bool channels_last;
    int outputs;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (!node_int(node, "training_mode", 0))
        return UNSUPPORTED(why, "only training mode");
    if (node->post_count > 1 || (node->post_count == 1 && node->posts[0].kind != POST_ACT))
        return UNSUPPORTED(why, "one activation at most as fused epilogue");
    if (shape_count(&q->in[0].shape) == 0)
        return UNSUPPORTED(why, "no elements, so no mean");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(check(q, why));
    bool plain = desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0]);
    bool last = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    if (!plain && !last)
        return UNSUPPORTED(why, "input and output lie differently");
    const struct shape *x = &q->in[0].shape;
    s->epsilon = (float)node_float(q->node, "epsilon", 1e-5);
    s->momentum = (float)node_float(q->node, "momentum", 0.9);
    s->images = x->dim[0];
    s->channels = x->rank > 1 ? x->dim[1] : 1;
    s->plane = x->rank > 2 ? shape_span(x, 2, x->rank) : 1;
    s->channels_last = last || x->rank < 3;
    if (q->node->post_count) {
        s->act = q->node->posts[0].act;
        s->a = q->node->posts[0].a;
        s->b = q->node->posts[0].b;
    }
    s->rows = s->images * s->plane;
    s->tile_rows = TILE_ELEMENTS / s->channels;
    s->tile_rows = larger(s->tile_rows, TILE_ROWS_MIN);
    s->tiles = divide_up(s->rows, s->tile_rows);
    s->outputs = q->out_count;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    int64_t parts = s->channels_last ? s->tiles * MOMENTS : 0;
    return (size_t)((parts + 2) * s->channels) * sizeof(float);
}

/* ---- moments to factors ---- */

static void put(float *at, int64_t channel, float value)
{
    if (at)
        at[channel] = value;
}

static void finish_channel(const struct kernel_state *job, int64_t c, float mean, float variance)
{
    float inverse = 1.0f / sqrtf(variance + job->epsilon), keep = job->momentum;
    float mean_before = job->mean_before[c], variance_before = job->variance_before[c];
    put(job->mean_after, c, keep * mean_before + (1 - keep) * mean);
    put(job->variance_after, c, keep * variance_before + (1 - keep) * variance);
    put(job->mean, c, mean);
    put(job->inverse, c, inverse);
    job->factor[c] = job->scale[c] * inverse;
    job->shift[c] = job->bias[c] - mean * job->factor[c];
}

/* ---- channels last ---- */

/* Differences of `count` rows to the tile's first row, and their squares, onto the sums. */
SIMD_INLINE void sum_rows(const float *x, const float *first, float *sum, float *squares,
                          int64_t channels, int count)
{
    for (int64_t c = 0; c < channels; c += VL) {
        vm lanes = vm_first(channels - c);
        vf origin = vf_load_m(first + c, lanes), s = vf_zero(), q = vf_zero();
        for (int r = 0; r < count; r++) {
            vf d = vf_sub(vf_load_m(x + r * channels + c, lanes), origin);
            s = vf_add(s, d);
            q = vf_fma(d, d, q);
        }
        vf_store_m(sum + c, lanes, vf_add(vf_load_m(sum + c, lanes), s));
        vf_store_m(squares + c, lanes, vf_add(vf_load_m(squares + c, lanes), q));
    }
}

static int64_t rows_of_tile(const struct kernel_state *job, int64_t tile)
{
    int64_t first = tile * job->tile_rows;
    return job->rows - first < job->tile_rows ? job->rows - first : job->tile_rows;
}

static void measure_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t channels = job->channels, rows = rows_of_tile(job, tile), r = 0;
    const float *first = job->x + tile * job->tile_rows * channels;
    float *sum = job->parts + tile * MOMENTS * channels, *squares = sum + channels;
    memset(sum, 0, (size_t)(MOMENTS * channels) * sizeof(float));
    for (; r + GROUP <= rows; r += GROUP)
        sum_rows(first + r * channels, first, sum, squares, channels, GROUP);
    for (; r < rows; r++)
        sum_rows(first + r * channels, first, sum, squares, channels, 1);
    float share = 1.0f / (float)rows;
    for (int64_t c = 0; c < channels; c++) {
        float mean = sum[c] * share;
        squares[c] -= sum[c] * mean;
        sum[c] = first[c] + mean;
    }
}

/* The mean of the tiles' means; their squares, and those of their means about it. */
static void join_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t from = block * CHANNEL_BLOCK, count = job->channels - from;
    double mean[CHANNEL_BLOCK] = {0}, squares[CHANNEL_BLOCK] = {0};
    count = smaller(count, CHANNEL_BLOCK);
    for (int64_t t = 0; t < job->tiles; t++) {
        const float *part = job->parts + (t * MOMENTS + MEAN) * job->channels + from;
        double weight = (double)rows_of_tile(job, t) / (double)job->rows;
        for (int64_t c = 0; c < count; c++)
            mean[c] += weight * (double)part[c];
    }
    for (int64_t t = 0; t < job->tiles; t++) {
        const float *part = job->parts + t * MOMENTS * job->channels + from;
        double rows = (double)rows_of_tile(job, t);
        for (int64_t c = 0; c < count; c++) {
            double off = (double)part[c] - mean[c];
            squares[c] += (double)part[SQUARES * job->channels + c] + rows * off * off;
        }
    }
    for (int64_t c = 0; c < count; c++) {
        double variance = squares[c] / (double)job->rows;
        finish_channel(job, from + c, (float)mean[c], variance < 0 ? 0 : (float)variance);
    }
}

static void apply_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t t = job->tiles - 1 - tile, n = job->channels, first = t * job->tile_rows;
    for (int64_t row = first; row < first + rows_of_tile(job, t); row++) {
        const float *x = job->x + row * n;
        float *y = job->y + row * n;
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            vf value = vf_fma(vf_load_m(x + i, lanes), vf_load_m(job->factor + i, lanes),
                              vf_load_m(job->shift + i, lanes));
            vf_store_m(y + i, lanes, vf_act(value, job->act, job->a, job->b));
        }
    }
}

/* ---- plain ---- */

/* Mean of (x - centre)^power over the planes of a channel. */
SIMD_INLINE float channel_moment(const struct kernel_state *job, int64_t channel, float centre,
                                 int power)
{
    double sum = 0;
    for (int64_t n = 0; n < job->images; n++) {
        const float *x = job->x + (n * job->channels + channel) * job->plane;
        for (int64_t i = 0; i < job->plane; i += MOMENT_PIECE) {
            int64_t rest = job->plane - i;
            sum +=
                (double)row_piece(x + i, rest < MOMENT_PIECE ? rest : MOMENT_PIECE, centre, power);
        }
    }
    return (float)(sum / (double)job->rows);
}

static void run_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    float mean = channel_moment(job, channel, 0, 1);
    finish_channel(job, channel, mean, channel_moment(job, channel, mean, 2));
    vf factor = vf_set1(job->factor[channel]), shift = vf_set1(job->shift[channel]);
    for (int64_t n = job->images - 1; n >= 0; n--) {
        int64_t at = (n * job->channels + channel) * job->plane;
        for (int64_t i = 0; i < job->plane; i += VL) {
            vm lanes = vm_first(job->plane - i);
            vf value = vf_fma(vf_load_m(job->x + at + i, lanes), factor, shift);
            vf_store_m(job->y + at + i, lanes, vf_act(value, job->act, job->a, job->b));
        }
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    float *const *out = (float *const *)args->out;
    job.x = args->in[0];
    job.scale = args->in[1];
    job.bias = args->in[2];
    job.mean_before = args->in[3];
    job.variance_before = args->in[4];
    job.y = out[0];
    job.mean_after = job.outputs > 1 ? out[1] : NULL;
    job.variance_after = job.outputs > 2 ? out[2] : NULL;
    job.mean = job.outputs > 3 ? out[3] : NULL;
    job.inverse = job.outputs > 4 ? out[4] : NULL;
    job.factor = args->workspace;
    job.shift = job.factor + job.channels;
    job.parts = job.shift + job.channels;
    if (!job.channels_last) {
        pool_run(args->pool, job.channels, run_channel, &job);
        return;
    }
    pool_run(args->pool, job.tiles, measure_tile, &job);
    pool_run(args->pool, divide_up(job.channels, CHANNEL_BLOCK), join_block, &job);
    pool_run(args->pool, job.tiles, apply_tile, &job);
}

REGISTER_KERNEL(norm_batch_training) = {
    NATIVE(norm_batch_training),
    .ops = OPS("BatchNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
