/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNormalization and InstanceNormalization (a group per channel). Plain images: a group is one
 * contiguous row. Channels-last: a thread takes neighbouring groups that fill a vector, and sums up
 * channel by channel while it walks over the positions; then channels join to groups.
 */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_moments.h"

enum { PIECE = 128 }; /* terms per lane before a sum joins the total */

struct job {
    const float *x, *scale, *bias;
    float *y, *scratch; /* scratch: per thread 3 values per channel of a tile */
    int64_t images, channels, plane, groups, group_channels;
    int64_t scale_channels, bias_channels; /* channels that share a parameter */
    int64_t tile_groups;                   /* channels-last: groups that a thread takes at a time */
    float epsilon;
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32) || q->node->post_count)
        return UNSUPPORTED(why, "only f32 without a fused epilogue");
    bool plain = desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0]);
    bool last = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    return plain || last ? STATUS_OK : UNSUPPORTED(why, "input and output lie differently");
}

static struct job job_of(const struct kernel_query *q)
{
    const struct shape *x = &q->in[0].shape;
    struct job job = {.images = x->dim[0],
                      .channels = x->dim[1],
                      .plane = shape_span(x, 2, x->rank),
                      .epsilon = (float)node_float(q->node, "epsilon", 1e-5)};
    job.groups = node_int(q->node, "num_groups", job.channels);
    job.group_channels = job.groups ? job.channels / job.groups : 0;
    int64_t scales = shape_count(&q->in[1].shape), biases = shape_count(&q->in[2].shape);
    job.scale_channels = scales ? job.channels / scales : 1;
    job.bias_channels = biases ? job.channels / biases : 1;
    job.tile_groups = 1;
    if (job.group_channels && job.group_channels < 16)
        job.tile_groups = (16 + job.group_channels - 1) / job.group_channels;
    return job;
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct job job = job_of(q);
    return (size_t)(q->threads * 3 * job.tile_groups * job.group_channels) * sizeof(float);
}

/* ---- plain ---- */

static void run_group(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    int64_t size = job->group_channels * job->plane, first = tile % job->groups;
    const float *x = job->x + tile * size;
    float *y = job->y + tile * size;
    float mean = row_moment(x, size, 0, 1);
    float inverse = 1.0f / sqrtf(row_moment(x, size, mean, 2) + job->epsilon);
    for (int64_t c = 0; c < job->group_channels; c++, x += job->plane, y += job->plane) {
        int64_t channel = first * job->group_channels + c;
        float factor = inverse * job->scale[channel / job->scale_channels];
        vf f = vf_set1(factor), m = vf_set1(mean);
        vf shift = vf_set1(job->bias[channel / job->bias_channels]);
        for (int64_t i = 0; i < job->plane; i += VL) {
            vm lanes = vm_first(job->plane - i);
            vf_store_m(y + i, lanes, vf_fma(vf_sub(vf_load_m(x + i, lanes), m), f, shift));
        }
    }
}

/* ---- channels last ---- */

/* sums[c] = sum over all positions of (x - centre[c])^power; centre NULL: zero. */
static void channel_sums(const struct job *job, const float *x, int64_t count, const float *centre,
                         float *sums)
{
    for (int64_t c = 0; c < count; c += VL) {
        vm lanes = vm_first(count - c);
        vf total = vf_zero(), middle = centre ? vf_load_m(centre + c, lanes) : vf_zero();
        for (int64_t first = 0; first < job->plane; first += PIECE) {
            int64_t last = first + PIECE < job->plane ? first + PIECE : job->plane;
            vf sum = vf_zero();
            for (int64_t p = first; p < last; p++) {
                vf d = vf_sub(vf_load_m(x + p * job->channels + c, lanes), middle);
                sum = centre ? vf_fma(d, d, sum) : vf_add(sum, d);
            }
            total = vf_add(total, sum);
        }
        vf_store_m(sums + c, lanes, total);
    }
}

/* Each group's mean of the sums, to all its channels. */
static void spread_mean(const struct job *job, int64_t count, const float *sums, float *mean)
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

static void run_channels(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    int64_t tiles = (job->groups + job->tile_groups - 1) / job->tile_groups;
    int64_t channel = tile % tiles * job->tile_groups * job->group_channels;
    int64_t most = job->tile_groups * job->group_channels, count = job->channels - channel;
    count = count < most ? count : most;
    float *sums = job->scratch + thread * 3 * most, *mean = sums + most, *factor = mean + most;
    int64_t start = tile / tiles * job->plane * job->channels + channel;
    channel_sums(job, job->x + start, count, NULL, sums);
    spread_mean(job, count, sums, mean);
    channel_sums(job, job->x + start, count, mean, sums);
    spread_mean(job, count, sums, factor);
    for (int64_t c = 0; c < count; c++) {
        factor[c] =
            job->scale[(channel + c) / job->scale_channels] / sqrtf(factor[c] + job->epsilon);
        sums[c] = job->bias[(channel + c) / job->bias_channels];
    }
    for (int64_t p = 0; p < job->plane; p++) {
        const float *x = job->x + start + p * job->channels;
        float *y = job->y + start + p * job->channels;
        for (int64_t c = 0; c < count; c += VL) {
            vm lanes = vm_first(count - c);
            vf d = vf_sub(vf_load_m(x + c, lanes), vf_load_m(mean + c, lanes));
            vf_store_m(y + c, lanes,
                       vf_fma(d, vf_load_m(factor + c, lanes), vf_load_m(sums + c, lanes)));
        }
    }
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct job job = job_of(q);
    job.x = args->in[0];
    job.scale = args->in[1];
    job.bias = args->in[2];
    job.y = args->out[0];
    job.scratch = args->workspace;
    if (shape_count(&q->in[0].shape) == 0)
        return;
    if (desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0]))
        pool_run(args->pool, job.images * job.groups, run_group, &job);
    else
        pool_run(args->pool, job.images * ((job.groups + job.tile_groups - 1) / job.tile_groups),
                 run_channels, &job);
}

REGISTER_KERNEL(norm_group) = {
    NATIVE(norm_group),   .ops = OPS("GroupNormalization", "InstanceNormalization"),
    .supports = supports, .old_workspace = workspace,
    .old_launch = launch,
};
