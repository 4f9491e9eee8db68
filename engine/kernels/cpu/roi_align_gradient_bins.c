/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlignGradient of f32: each bin gives to some rows and columns of the map what it took of them
 * (engine/kernels/lib/roi_parts.h). A task is an image and a block of channels (plain: a channel),
 * which takes the regions in their order: the result is the same on any number of threads.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/roi_mean.h"
#include "engine/kernels/lib/simd.h"

enum { BLOCK = 4 * VL };

struct kernel_state {
    struct roi_mean r;
    int64_t blocks; /* of channels, of an image */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(roi_mean_from(q, &q->out[0].shape, &q->in[0].shape, false, &s->r, why));
    s->blocks = s->r.nhwc ? divide_up(s->r.channels, BLOCK) : s->r.channels;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return roi_mean_workspace(&s->r);
}

struct job {
    const struct kernel_state *state;
    const float *dy, *rois;
    const void *image;
    float *dx;
    struct roi_part *workspace;
};

/* dx and dy: of the block's first channel. */
static void add_nhwc(const struct roi_mean *s, int64_t channels, const float *dy,
                     const struct roi_parts *rows, const struct roi_parts *columns, float *dx)
{
    for (int64_t k = 0; k < channels; k += VL) {
        vm lanes = vm_first(channels - k);
        vf part = vf_load_m(dy + k, lanes);
        for (int r = 0; r < rows->count; r++) {
            float *row = dx + rows->list[r].at * s->width * s->channels + k;
            for (int e = 0; e < columns->count; e++) {
                float *to = row + columns->list[e].at * s->channels;
                vf weight = vf_set1(rows->list[r].weight * columns->list[e].weight);
                vf_store_m(to, lanes, vf_fma(weight, part, vf_load_m(to, lanes)));
            }
        }
    }
}

static void add_plain(const struct roi_mean *s, float dy, const struct roi_parts *rows,
                      const struct roi_parts *columns, float *dx)
{
    for (int r = 0; r < rows->count; r++)
        for (int e = 0; e < columns->count; e++)
            dx[rows->list[r].at * s->width + columns->list[e].at] +=
                rows->list[r].weight * columns->list[e].weight * dy;
}

/* Channels [first, first + count) of region n; plain: one. dx: of its image. */
static void add_region(const struct job *job, int64_t n, int64_t first, int64_t count, float *dx,
                       struct roi_part *scratch)
{
    const struct roi_mean *s = &job->state->r;
    int64_t bins = s->out_h * s->out_w, plane = s->height * s->width;
    struct roi_axes axes = roi_mean_axes(s, job->rois + n * 4);
    for (int64_t k = 0; k < bins; k++) {
        struct roi_parts rows = roi_weigh(&axes.down, k / s->out_w, scratch);
        struct roi_parts columns = roi_weigh(&axes.across, k % s->out_w, scratch + s->height);
        if (s->nhwc)
            add_nhwc(s, count, job->dy + (n * bins + k) * s->channels + first, &rows, &columns,
                     dx + first);
        else
            add_plain(s, job->dy[(n * s->channels + first) * bins + k], &rows, &columns,
                      dx + first * plane);
    }
}

static void run_block(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct roi_mean *s = &job->state->r;
    int64_t blocks = job->state->blocks, image = task / blocks, width = s->nhwc ? BLOCK : 1,
            plane = s->height * s->width;
    int64_t first = task % blocks * width, left = s->channels - first;
    int64_t count = left < width ? left : width;
    float *dx = job->dx + image * s->channels * plane;
    for (int64_t k = 0; s->nhwc && k < plane; k++)
        memset(dx + k * s->channels + first, 0, (size_t)count * sizeof(float));
    if (!s->nhwc)
        memset(dx + first * plane, 0, (size_t)plane * sizeof(float));
    for (int64_t n = 0; plane && n < s->rois; n++) {
        int64_t at = roi_mean_image(s, job->image, n);
        if (at == image)
            add_region(job, n, first, count, dx, job->workspace + (size_t)thread * s->slot);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->in[1], args->in[2], args->out[0], args->workspace};
    pool_run(args->pool, state->r.images * state->blocks, run_block, &job);
}

REGISTER_KERNEL(roi_align_gradient_bins) = {
    NATIVE(roi_align_gradient_bins),
    .ops = OPS("RoiAlignGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
