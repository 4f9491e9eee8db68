/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlign by means, of maps of f32 or bf16: a weighted sum over some rows and columns of the image
 * for each bin (engine/kernels/lib/roi_parts.h). Neighbouring samples share elements, which are
 * read once; samples outside the image weigh nothing, per axis.
 */
#include "engine/kernels/lib/roi_mean.h"
#include "engine/kernels/lib/simd_floats.h"

struct kernel_state {
    struct roi_mean r;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    return roi_mean_from(q, &q->in[0].shape, &q->out[0].shape, true, &s->r, why);
}

static size_t workspace(const struct kernel_state *s)
{
    return roi_mean_workspace(&s->r);
}

/* The sum over rows and columns for 4 VL channels at a time. */
SIMD_INLINE void bin_nhwc(const struct roi_mean *s, const void *x, const struct roi_parts *rows,
                          const struct roi_parts *columns, void *y, int64_t to, bool bf16)
{
    int64_t c = s->channels;
    for (int64_t k = 0; k < c; k += 4 * VL) {
        vm m[4];
        vf sum[4];
        for (int j = 0; j < 4; j++) {
            m[j] = vm_first(c - k - j * VL);
            sum[j] = vf_zero();
        }
        for (int r = 0; r < rows->count; r++) {
            int64_t row = rows->list[r].at * s->width * c + k;
            for (int e = 0; e < columns->count; e++) {
                const void *at = float_at(x, row + columns->list[e].at * c, bf16);
                vf weight = vf_set1(rows->list[r].weight * columns->list[e].weight);
                for (int j = 0; j < 4; j++)
                    sum[j] = vf_fma(weight, vf_read_m(at, j * VL, m[j], bf16), sum[j]);
            }
        }
        for (int j = 0; j < 4; j++)
            vf_write_m(y, to + k + j * VL, m[j], sum[j], bf16);
    }
}

SIMD_INLINE float bin_plain(const struct roi_mean *s, const void *plane,
                            const struct roi_parts *rows, const struct roi_parts *columns,
                            bool bf16)
{
    float sum = 0;
    for (int r = 0; r < rows->count; r++) {
        const void *row = float_at(plane, rows->list[r].at * s->width, bf16);
        float line = 0;
        for (int e = 0; e < columns->count; e++)
            line += columns->list[e].weight * float_read(row, columns->list[e].at, bf16);
        sum += rows->list[r].weight * line;
    }
    return sum;
}

struct job {
    const struct roi_mean *state;
    const void *x;
    const float *rois;
    const void *image;
    void *y;
    struct roi_part *workspace;
};

/* A row of bins of region n. image NULL: there is none of that number, the result is zero. */
SIMD_INLINE void row_of_bins(const struct job *job, int64_t n, int64_t row, const void *image,
                             struct roi_part *scratch, bool bf16)
{
    const struct roi_mean *s = job->state;
    int64_t c = s->channels, plane = s->height * s->width, bins = s->out_h * s->out_w;
    struct roi_axes axes = roi_mean_axes(s, job->rois + n * 4);
    struct roi_parts rows = roi_weigh(&axes.down, row, scratch);
    if (!image)
        rows.count = 0;
    for (int64_t k = 0; k < s->out_w; k++) {
        struct roi_parts columns = roi_weigh(&axes.across, k, scratch + s->height);
        int64_t bin = row * s->out_w + k;
        if (s->nhwc) {
            bin_nhwc(s, image, &rows, &columns, job->y, (n * bins + bin) * c, bf16);
            continue;
        }
        for (int64_t j = 0; j < c; j++) {
            const void *from = image ? float_at(image, j * plane, bf16) : NULL;
            float_write(job->y, (n * c + j) * bins + bin, bin_plain(s, from, &rows, &columns, bf16),
                        bf16);
        }
    }
}

static void tile_work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct roi_mean *s = job->state;
    int64_t n = tile / s->out_h;
    int64_t at = roi_mean_image(s, job->image, n);
    bool exists = at >= 0 && at < s->images && s->height && s->width;
    int64_t elements = s->channels * s->height * s->width;
    const void *image = exists ? float_at(job->x, at * elements, s->bf16) : NULL;
    struct roi_part *scratch = job->workspace + (size_t)thread * s->slot;
    if (s->bf16)
        row_of_bins(job, n, tile % s->out_h, image, scratch, true);
    else
        row_of_bins(job, n, tile % s->out_h, image, scratch, false);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {&state->r,   args->in[0],  args->in[1],
                      args->in[2], args->out[0], args->workspace};
    pool_run(args->pool, state->r.rois * state->r.out_h, tile_work, &job);
}

REGISTER_KERNEL(roi_align_bins) = {
    NATIVE(roi_align_bins), .ops = OPS("RoiAlign"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .workspace = workspace, .launch = launch,
};
