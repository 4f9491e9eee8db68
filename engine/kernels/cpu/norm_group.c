/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNormalization and InstanceNormalization (a group per channel). Plain images: a group is one
 * contiguous row. Channels-last: a thread takes neighbouring groups that fill a vector, and sums up
 * channel by channel while it walks over the positions; then channels join to groups. Moments,
 * factors and shifts are f32 for images of bf16, too.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_moments.h"
#include "engine/kernels/lib/simd_floats.h"

enum { PIECE = 128 }; /* terms per lane before a sum joins the total */

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x, *scale, *bias;
    void *y;
    float *scratch; /* per thread 3 values per channel of a tile; plain of bf16: a piece */
    int64_t images, channels, plane, groups, group_channels;
    int64_t scale_channels, bias_channels; /* channels that share a parameter */
    int64_t tile_groups;                   /* channels-last: groups that a thread takes at a time */
    float epsilon;
    bool plain, empty, bf16;
    int threads;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->bf16 = query_all_dtype(q, DTYPE_BF16);
    if ((!s->bf16 && !query_all_dtype(q, DTYPE_F32)) || q->node->post_count)
        return UNSUPPORTED(why, "only f32 or bf16 without a fused epilogue");
    bool plain = desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0]);
    bool last = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    if (!plain && !last)
        return UNSUPPORTED(why, "input and output lie differently");
    const struct shape *x = &q->in[0].shape;
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->plane = shape_span(x, 2, x->rank);
    s->epsilon = (float)node_float(q->node, "epsilon", 1e-5);
    s->groups = node_int(q->node, "num_groups", s->channels);
    s->group_channels = s->groups ? s->channels / s->groups : 0;
    int64_t scales = shape_count(&q->in[1].shape), biases = shape_count(&q->in[2].shape);
    s->scale_channels = scales ? s->channels / scales : 1;
    s->bias_channels = biases ? s->channels / biases : 1;
    s->tile_groups = 1;
    if (s->group_channels && s->group_channels < 16)
        s->tile_groups = (16 + s->group_channels - 1) / s->group_channels;
    s->plain = plain;
    s->empty = shape_count(x) == 0;
    s->threads = q->threads;
    return STATUS_OK;
}

/* Floats of a thread. */
static int64_t scratch_of(const struct kernel_state *s)
{
    if (s->plain)
        return s->bf16 ? MOMENT_PIECE : 0;
    return 3 * s->tile_groups * s->group_channels;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * scratch_of(s)) * sizeof(float);
}

/* ---- plain ---- */

/* As row_moment, of floats made piece by piece where they are not there. */
SIMD_INLINE float moment(const void *x, int64_t n, float centre, int power, float *piece, bool bf16)
{
    if (!bf16)
        return row_moment(x, n, centre, power);
    double sum = 0;
    for (int64_t i = 0; i < n; i += MOMENT_PIECE) {
        int64_t count = smaller(n - i, (int64_t)MOMENT_PIECE);
        for (int64_t k = 0; k < count; k += VL) {
            vm m = vm_first(count - k);
            vf_store_m(piece + k, m, vf_read_m(x, i + k, m, true));
        }
        sum += (double)row_piece(piece, count, centre, power);
    }
    return (float)(sum / (double)n);
}

SIMD_INLINE void group(const struct kernel_state *job, int64_t tile, float *piece, bool bf16)
{
    int64_t size = job->group_channels * job->plane, first = tile % job->groups;
    int64_t at = tile * size, plane = job->plane;
    const void *x = job->x, *row = float_at(x, at, bf16);
    void *y = job->y;
    float mean = moment(row, size, 0, 1, piece, bf16);
    float inverse = 1.0f / sqrtf(moment(row, size, mean, 2, piece, bf16) + job->epsilon);
    for (int64_t c = 0; c < job->group_channels; c++, at += plane) {
        int64_t channel = first * job->group_channels + c;
        float factor = inverse * float_read(job->scale, channel / job->scale_channels, bf16);
        vf f = vf_set1(factor), m = vf_set1(mean);
        vf shift = vf_set1(float_read(job->bias, channel / job->bias_channels, bf16));
        for (int64_t i = 0; i < plane; i += VL) {
            vm lanes = vm_first(plane - i);
            vf d = vf_sub(vf_read_m(x, at + i, lanes, bf16), m);
            vf_write_m(y, at + i, lanes, vf_fma(d, f, shift), bf16);
        }
    }
}

static void run_group(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    if (job->bf16)
        group(job, tile, job->scratch + thread * scratch_of(job), true);
    else
        group(job, tile, NULL, false);
}

/* ---- channels last ---- */

/* sums[c] = sum over all positions of (x - centre[c])^power; centre NULL: zero. */
SIMD_INLINE void channel_sums(const struct kernel_state *job, int64_t start, int64_t count,
                              const float *centre, float *sums, bool bf16)
{
    for (int64_t c = 0; c < count; c += VL) {
        vm lanes = vm_first(count - c);
        vf total = vf_zero(), middle = centre ? vf_load_m(centre + c, lanes) : vf_zero();
        for (int64_t first = 0; first < job->plane; first += PIECE) {
            int64_t last = first + PIECE < job->plane ? first + PIECE : job->plane;
            vf sum = vf_zero();
            for (int64_t p = first; p < last; p++) {
                vf x = vf_read_m(job->x, start + p * job->channels + c, lanes, bf16);
                vf d = vf_sub(x, middle);
                sum = centre ? vf_fma(d, d, sum) : vf_add(sum, d);
            }
            total = vf_add(total, sum);
        }
        vf_store_m(sums + c, lanes, total);
    }
}

/* Each group's mean of the sums, to all its channels. */
static void spread_mean(const struct kernel_state *job, int64_t count, const float *sums,
                        float *mean)
{
    double elements = (double)(job->group_channels * job->plane);
    for (int64_t c = 0; c < count; c += job->group_channels) {
        double sum = 0;
        for (int64_t k = c; k < c + job->group_channels; k++)
            sum += (double)sums[k];
        for (int64_t k = c; k < c + job->group_channels; k++)
            mean[k] = (float)(sum / elements);
    }
}

/* y = (x - mean) factor + shift, at all positions. */
SIMD_INLINE void shift_channels(const struct kernel_state *job, int64_t start, int64_t count,
                                const float *mean, const float *factor, const float *shift,
                                bool bf16)
{
    const void *x = job->x;
    void *to = job->y;
    for (int64_t p = 0; p < job->plane; p++) {
        int64_t at = start + p * job->channels;
        for (int64_t c = 0; c < count; c += VL) {
            vm lanes = vm_first(count - c);
            vf d = vf_sub(vf_read_m(x, at + c, lanes, bf16), vf_load_m(mean + c, lanes));
            vf y = vf_fma(d, vf_load_m(factor + c, lanes), vf_load_m(shift + c, lanes));
            vf_write_m(to, at + c, lanes, y, bf16);
        }
    }
}

SIMD_INLINE void channels(const struct kernel_state *job, int64_t tile, float *sums, bool bf16)
{
    int64_t tiles = divide_up(job->groups, job->tile_groups);
    int64_t channel = tile % tiles * job->tile_groups * job->group_channels;
    int64_t limit = job->tile_groups * job->group_channels, count = job->channels - channel;
    count = smaller(count, limit);
    float *mean = sums + limit, *factor = mean + limit;
    int64_t start = tile / tiles * job->plane * job->channels + channel;
    channel_sums(job, start, count, NULL, sums, bf16);
    spread_mean(job, count, sums, mean);
    channel_sums(job, start, count, mean, sums, bf16);
    spread_mean(job, count, sums, factor);
    for (int64_t c = 0; c < count; c++) {
        int64_t scale = (channel + c) / job->scale_channels;
        int64_t bias = (channel + c) / job->bias_channels;
        factor[c] = float_read(job->scale, scale, bf16) / sqrtf(factor[c] + job->epsilon);
        sums[c] = float_read(job->bias, bias, bf16);
    }
    shift_channels(job, start, count, mean, factor, sums, bf16);
}

static void run_channels(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    float *sums = job->scratch + thread * scratch_of(job);
    if (job->bf16)
        channels(job, tile, sums, true);
    else
        channels(job, tile, sums, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.scale = args->in[1];
    job.bias = args->in[2];
    job.y = args->out[0];
    job.scratch = args->workspace;
    if (job.empty)
        return;
    if (job.plain)
        pool_run(args->pool, job.images * job.groups, run_group, &job);
    else
        pool_run(args->pool, job.images * divide_up(job.groups, job.tile_groups), run_channels,
                 &job);
}

REGISTER_KERNEL(norm_group) = {
    NATIVE(norm_group),
    .ops = OPS("GroupNormalization", "InstanceNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
