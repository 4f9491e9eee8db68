/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalizationGradient: one reading of dy and x for the two sums of each channel, and one for
 * dx = dy by_dy + (x - mean) by_x + constant. Behind a ReLU it is found out once more from x where
 * dy counts, by the same multiplication and addition as forwards: the ReLU's result is not read.
 *
 * Channels-last: tiles of rows sum eight rows at a time in registers, then in a row of floats, then
 * in double over the tiles, which do not depend on how many threads there are; neither does the
 * result. dx is made from the last tile backwards, since that may still lie in a cache. Plain: a
 * channel is a tile.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum {
    TILE_ELEMENTS = 16384,
    TILE_ROWS_MIN = 32, /* so that the tiles' sums stay small beside x */
    GROUP = 8,          /* rows that are summed in registers */
    PIECE = 64 * VL,    /* elements of a plane that are summed in a register */
    CHANNEL_BLOCK = 64  /* channels whose sums are joined at a time */
};

enum { DY, DY_X, SUMS };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *dy, *x, *scale, *mean, *inverse, *bias; /* bias: a ReLU follows; or NULL */
    float *dx, *dscale, *dbias;                          /* may be NULL */
    float *by_dy, *by_x, *constant;                      /* per channel */
    float *factor, *shift; /* per channel: dy counts where x factor + shift > 0 */
    float *parts;          /* [tiles, SUMS, channels] */
    int64_t images, channels, plane, rows, tile_rows, tiles;
    bool channels_last, training, relu;
    bool wants[3];
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    const struct shape *x = &q->in[1].shape;
    for (int k = 0; k < 3; k++)
        s->wants[k] = k < q->out_count && q->out[k].dtype != DTYPE_NONE;
    bool plain = desc_is_plain(&q->in[0]) && desc_is_plain(&q->in[1]);
    bool last = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->in[1]);
    plain = plain && (!s->wants[0] || desc_is_plain(&q->out[0]));
    last = last && (!s->wants[0] || desc_is_nhwc(&q->out[0]));
    if (!plain && !last)
        return UNSUPPORTED(why, "dy, x and dx lie differently");
    s->relu = query_in(q, 5) != NULL;
    s->training = node_int(q->node, "training_mode", 0) != 0;
    s->images = x->dim[0];
    s->channels = x->rank > 1 ? x->dim[1] : 1;
    s->plane = x->rank > 2 ? shape_span(x, 2, x->rank) : 1;
    s->channels_last = last || x->rank < 3;
    s->rows = s->images * s->plane;
    s->tile_rows = s->channels ? TILE_ELEMENTS / s->channels : 0;
    s->tile_rows = larger(s->tile_rows, TILE_ROWS_MIN);
    s->tiles = divide_up(s->rows, s->tile_rows);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    int64_t parts = s->channels_last ? s->tiles * SUMS : 0;
    return (size_t)((parts + 5) * s->channels) * sizeof(float);
}

/* dy and dy_x: sums of dy, and of dy (x - mean). */
static void finish_channel(const struct kernel_state *job, int64_t c, double dy, double dy_x)
{
    double inverse = (double)job->inverse[c], by_dy = (double)job->scale[c] * inverse;
    double share = job->training && job->rows ? by_dy / (double)job->rows : 0;
    if (job->dscale)
        job->dscale[c] = (float)(dy_x * inverse);
    if (job->dbias)
        job->dbias[c] = (float)dy;
    job->by_dy[c] = (float)by_dy;
    job->by_x[c] = (float)(-share * dy_x * inverse * inverse);
    job->constant[c] = (float)(-share * dy);
}

/* How norm_batch_training has it. */
static void find_gates(const struct kernel_state *job)
{
    for (int64_t c = 0; c < job->channels; c++) {
        job->factor[c] = job->scale[c] * job->inverse[c];
        job->shift[c] = job->bias[c] - job->mean[c] * job->factor[c];
    }
}

SIMD_INLINE vf gated(vf dy, vf x, vf factor, vf shift)
{
    return vf_select(vf_lt(vf_zero(), vf_fma(x, factor, shift)), dy, vf_zero());
}

/* ---- channels last ---- */

SIMD_INLINE void sum_rows(const struct kernel_state *job, int64_t at, float *sums, int count,
                          bool relu)
{
    int64_t n = job->channels;
    const float *dy = job->dy + at, *x = job->x + at, *mean = job->mean;
    for (int64_t c = 0; c < n; c += VL) {
        vm lanes = vm_first(n - c);
        vf middle = vf_load_m(mean + c, lanes), sum = vf_zero(), sum_x = vf_zero();
        vf factor = relu ? vf_load_m(job->factor + c, lanes) : vf_zero();
        vf shift = relu ? vf_load_m(job->shift + c, lanes) : vf_zero();
        for (int r = 0; r < count; r++) {
            vf d = vf_load_m(dy + r * n + c, lanes), v = vf_load_m(x + r * n + c, lanes);
            d = relu ? gated(d, v, factor, shift) : d;
            sum = vf_add(sum, d);
            sum_x = vf_fma(d, vf_sub(v, middle), sum_x);
        }
        vf_store_m(sums + c, lanes, vf_add(vf_load_m(sums + c, lanes), sum));
        vf_store_m(sums + n + c, lanes, vf_add(vf_load_m(sums + n + c, lanes), sum_x));
    }
}

static int64_t tile_end(const struct kernel_state *job, int64_t tile)
{
    int64_t end = (tile + 1) * job->tile_rows;
    return end < job->rows ? end : job->rows;
}

SIMD_INLINE void sum_tile_as(const struct kernel_state *job, int64_t tile, bool relu)
{
    int64_t row = tile * job->tile_rows, end = tile_end(job, tile);
    float *sums = job->parts + tile * SUMS * job->channels;
    memset(sums, 0, (size_t)(SUMS * job->channels) * sizeof(float));
    for (; row + GROUP <= end; row += GROUP)
        sum_rows(job, row * job->channels, sums, GROUP, relu);
    for (; row < end; row++)
        sum_rows(job, row * job->channels, sums, 1, relu);
}

static void sum_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    if (job->relu)
        sum_tile_as(job, tile, true);
    else
        sum_tile_as(job, tile, false);
}

static void join_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t from = block * CHANNEL_BLOCK, count = job->channels - from;
    double dy[CHANNEL_BLOCK] = {0}, dy_x[CHANNEL_BLOCK] = {0};
    count = smaller(count, CHANNEL_BLOCK);
    for (int64_t t = 0; t < job->tiles; t++) {
        const float *part = job->parts + t * SUMS * job->channels + from;
        for (int64_t c = 0; c < count; c++) {
            dy[c] += (double)part[DY * job->channels + c];
            dy_x[c] += (double)part[DY_X * job->channels + c];
        }
    }
    for (int64_t c = 0; c < count; c++)
        finish_channel(job, from + c, dy[c], dy_x[c]);
}

SIMD_INLINE void apply_tile_as(const struct kernel_state *job, int64_t t, bool relu)
{
    int64_t n = job->channels;
    for (int64_t row = t * job->tile_rows; row < tile_end(job, t); row++) {
        const float *dy = job->dy + row * n, *x = job->x + row * n;
        float *dx = job->dx + row * n;
        for (int64_t c = 0; c < n; c += VL) {
            vm lanes = vm_first(n - c);
            vf d = vf_load_m(dy + c, lanes), v = vf_load_m(x + c, lanes);
            if (relu)
                d = gated(d, v, vf_load_m(job->factor + c, lanes),
                          vf_load_m(job->shift + c, lanes));
            vf rest = vf_fma(vf_sub(v, vf_load_m(job->mean + c, lanes)),
                             vf_load_m(job->by_x + c, lanes), vf_load_m(job->constant + c, lanes));
            vf_store_m(dx + c, lanes, vf_fma(d, vf_load_m(job->by_dy + c, lanes), rest));
        }
    }
}

static void apply_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t t = job->tiles - 1 - tile;
    if (job->relu)
        apply_tile_as(job, t, true);
    else
        apply_tile_as(job, t, false);
}

/* ---- plain ---- */

/* dy of the result of the normalisation, in the lanes from element `at` on. */
SIMD_INLINE vf dy_at(const struct kernel_state *job, int64_t channel, int64_t at, vm lanes, vf x)
{
    vf dy = vf_load_m(job->dy + at, lanes);
    return job->relu ? gated(dy, x, vf_set1(job->factor[channel]), vf_set1(job->shift[channel]))
                     : dy;
}

static void sum_channel(const struct kernel_state *job, int64_t channel, double *dy, double *dy_x)
{
    vf middle = vf_set1(job->mean[channel]);
    for (int64_t n = 0; n < job->images; n++) {
        int64_t at = (n * job->channels + channel) * job->plane;
        for (int64_t first = 0; first < job->plane; first += PIECE) {
            int64_t last = first + PIECE < job->plane ? first + PIECE : job->plane;
            vf sum = vf_zero(), sum_x = vf_zero();
            for (int64_t i = first; i < last; i += VL) {
                vm lanes = vm_first(last - i);
                vf x = vf_load_m(job->x + at + i, lanes);
                vf d = dy_at(job, channel, at + i, lanes, x);
                sum = vf_add(sum, d);
                sum_x = vf_fma(d, vf_sub(x, middle), sum_x);
            }
            *dy += (double)vf_sum(sum);
            *dy_x += (double)vf_sum(sum_x);
        }
    }
}

static void run_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    double sum_dy = 0, sum_dy_x = 0;
    sum_channel(job, channel, &sum_dy, &sum_dy_x);
    finish_channel(job, channel, sum_dy, sum_dy_x);
    vf by_dy = vf_set1(job->by_dy[channel]), by_x = vf_set1(job->by_x[channel]);
    vf constant = vf_set1(job->constant[channel]), middle = vf_set1(job->mean[channel]);
    for (int64_t n = job->images - 1; job->dx && n >= 0; n--) {
        int64_t at = (n * job->channels + channel) * job->plane;
        for (int64_t i = 0; i < job->plane; i += VL) {
            vm lanes = vm_first(job->plane - i);
            vf x = vf_load_m(job->x + at + i, lanes);
            vf d = dy_at(job, channel, at + i, lanes, x);
            vf rest = vf_fma(vf_sub(x, middle), by_x, constant);
            vf_store_m(job->dx + at + i, lanes, vf_fma(d, by_dy, rest));
        }
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.dy = args->in[0];
    job.x = args->in[1];
    job.scale = args->in[2];
    job.mean = args->in[3];
    job.inverse = args->in[4];
    job.bias = job.relu ? args->in[5] : NULL;
    job.dx = job.wants[0] ? args->out[0] : NULL;
    job.dscale = job.wants[1] ? args->out[1] : NULL;
    job.dbias = job.wants[2] ? args->out[2] : NULL;
    job.by_dy = args->workspace;
    job.by_x = job.by_dy + job.channels;
    job.constant = job.by_x + job.channels;
    job.factor = job.constant + job.channels;
    job.shift = job.factor + job.channels;
    job.parts = job.shift + job.channels;
    if (job.relu)
        find_gates(&job);
    if (!job.channels_last) {
        pool_run(args->pool, job.channels, run_channel, &job);
        return;
    }
    pool_run(args->pool, job.tiles, sum_tile, &job);
    pool_run(args->pool, divide_up(job.channels, CHANNEL_BLOCK), join_block, &job);
    if (job.dx)
        pool_run(args->pool, job.tiles, apply_tile, &job);
}

REGISTER_KERNEL(norm_batch_gradient) = {
    NATIVE(norm_batch_gradient),
    .ops = OPS("BatchNormalizationGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
