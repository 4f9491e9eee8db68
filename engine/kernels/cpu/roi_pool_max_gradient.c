/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxRoiPoolGradient of f32. A task is a channel, of all images: regions in order, each bin's
 * largest element searched anew. A thousandth of the time of the network that it stands in.
 */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/roi_bins.h"

struct kernel_state {
    int64_t images, channels, height, width, regions, rows, columns;
    float scale;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const int64_t *x = q->in[0].shape.dim, *dy = q->in[2].shape.dim;
    TRY(query_plain_f32(q, why));
    *s = (struct kernel_state){.images = x[0],
                               .channels = x[1],
                               .height = x[2],
                               .width = x[3],
                               .regions = dy[0],
                               .rows = dy[2],
                               .columns = dy[3],
                               .scale = (float)node_float(q->node, "spatial_scale", 1)};
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const float *x, *regions, *dy;
    float *dx;
};

/* The first of a rectangle's largest elements; -1: it is empty. */
static int64_t largest(const float *x, int64_t width, struct roi_bin rows, struct roi_bin columns)
{
    if (rows.begin >= rows.end || columns.begin >= columns.end)
        return -1;
    int64_t best = rows.begin * width + columns.begin;
    for (int64_t y = rows.begin; y < rows.end; y++)
        for (int64_t at = y * width + columns.begin; at < y * width + columns.end; at++)
            best = x[at] > x[best] ? at : best;
    return best;
}

static void run_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t plane = s->height * s->width, bins = s->rows * s->columns;
    for (int64_t n = 0; n < s->images; n++)
        memset(job->dx + (n * s->channels + channel) * plane, 0, (size_t)plane * sizeof(float));
    for (int64_t r = 0; r < s->regions; r++) {
        const float *roi = job->regions + r * 5;
        const float *dy = job->dy + (r * s->channels + channel) * bins;
        if (!(roi[0] >= 0 && roi[0] < (float)s->images))
            continue;
        int64_t at = ((int64_t)roi[0] * s->channels + channel) * plane;
        struct roi_span across =
            roi_span_of(roi[1] * s->scale, roi[3] * s->scale, s->width, s->columns);
        struct roi_span down =
            roi_span_of(roi[2] * s->scale, roi[4] * s->scale, s->height, s->rows);
        for (int64_t k = 0; k < bins; k++) {
            int64_t best = largest(job->x + at, s->width, roi_bin_of(&down, k / s->columns),
                                   roi_bin_of(&across, k % s->columns));
            if (best >= 0)
                job->dx[at + best] += dy[k];
        }
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->in[1], args->in[2], args->out[0]};
    pool_run(args->pool, state->channels, run_channel, &job);
}

REGISTER_KERNEL(roi_pool_max_gradient) = {
    NATIVE(roi_pool_max_gradient),
    .ops = OPS("MaxRoiPoolGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
