/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxRoiPool of maps of f32 or bf16. The maps are turned channels-last once per launch, so that a
 * bin is a walk over its places with vectors of channels; regions overlap a lot, each place is read
 * many times. A task is a region and a block of channels, whose bins are gathered and written back
 * plain.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/roi_bins.h"
#include "engine/kernels/lib/simd_floats.h"

enum { BLOCK = 4 * VL, BINS_MAX = 196 };

struct kernel_state {
    int64_t images, channels, height, width, regions, rows, columns;
    float scale;
    int64_t map_bytes; /* of all maps, channels-last in whole blocks of channels */
    bool bf16;         /* maps and bins, not regions */
    int threads;
};

static int64_t blocks_of(int64_t channels)
{
    return divide_up(channels, BLOCK);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const int64_t *x = q->in[0].shape.dim, *y = q->out[0].shape.dim;
    bool bf16 = q->in[0].dtype == DTYPE_BF16;
    if ((!bf16 && q->in[0].dtype != DTYPE_F32) || q->in[1].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only maps of f32 or bf16, and regions of f32");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->in[1]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain maps, regions and bins");
    if (y[2] * y[3] > BINS_MAX)
        return UNSUPPORTED(why, "more than %d bins", BINS_MAX);
    *s = (struct kernel_state){.images = x[0],
                               .channels = x[1],
                               .height = x[2],
                               .width = x[3],
                               .regions = y[0],
                               .rows = y[2],
                               .columns = y[3],
                               .scale = (float)node_float(q->node, "spatial_scale", 1),
                               .bf16 = bf16,
                               .threads = q->threads};
    int64_t elements = x[0] * x[2] * x[3] * blocks_of(x[1]) * BLOCK;
    s->map_bytes = divide_up(elements * (bf16 ? 2 : 4), 64) * 64;
    return STATUS_OK;
}

/* The maps; per thread the bins of a block. */
static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->map_bytes + (int64_t)BINS_MAX * BLOCK * s->threads * 4);
}

struct job {
    const struct kernel_state *state;
    const void *x;
    const float *regions;
    void *y, *maps;
    char *bins;
};

SIMD_INLINE void copy_number(void *y, int64_t to, const void *x, int64_t from, bool bf16)
{
    if (bf16)
        ((uint16_t *)y)[to] = ((const uint16_t *)x)[from];
    else
        ((float *)y)[to] = ((const float *)x)[from];
}

/* One row of one image, all channels. */
SIMD_INLINE void turn(const struct job *job, int64_t row, bool bf16)
{
    const struct kernel_state *s = job->state;
    int64_t padded = blocks_of(s->channels) * BLOCK, plane = s->height * s->width;
    int64_t image = row / s->height;
    int64_t from = image * s->channels * plane + row % s->height * s->width;
    int64_t to = row * s->width * padded;
    const void *x = job->x;
    void *maps = job->maps;
    for (int64_t first = 0; first < s->channels; first += VL)
        for (int64_t k = 0; k < s->width; k++)
            for (int64_t c = first; c < first + VL && c < s->channels; c++)
                copy_number(maps, to + k * padded + c, x, from + c * plane + k, bf16);
}

static void turn_row(void *context, int64_t row, int thread)
{
    (void)thread;
    const struct job *job = context;
    if (job->state->bf16)
        turn(job, row, true);
    else
        turn(job, row, false);
}

/* The largest of a block of channels over a rectangle of places; 0 where that is empty. */
SIMD_INLINE void pool_bin(const struct kernel_state *s, const void *map, struct roi_bin y,
                          struct roi_bin x, void *bins, int64_t bin, bool bf16)
{
    int64_t step = blocks_of(s->channels) * BLOCK;
    bool empty = y.begin >= y.end || x.begin >= x.end;
    vf largest[4];
    for (int j = 0; j < 4; j++)
        largest[j] = empty ? vf_zero() : vf_set1(-INFINITY);
    for (int64_t row = y.begin; row < y.end; row++) {
        const void *at = float_at(map, (row * s->width + x.begin) * step, bf16);
        for (int64_t k = x.begin; k < x.end; k++, at = float_at(at, step, bf16))
            for (int j = 0; j < 4; j++)
                largest[j] = vf_max(vf_read(at, j * VL, bf16), largest[j]);
    }
    for (int j = 0; j < 4; j++)
        vf_write(bins, bin * BLOCK + j * VL, largest[j], bf16);
}

SIMD_INLINE void pool_block(const struct job *job, int64_t task, int thread, bool bf16)
{
    const struct kernel_state *s = job->state;
    int64_t blocks = blocks_of(s->channels), region = task / blocks;
    int64_t first = task % blocks * BLOCK, bins = s->rows * s->columns;
    const float *roi = job->regions + region * 5;
    char *bin = job->bins + (int64_t)thread * BINS_MAX * BLOCK * 4, *y = job->y;
    int64_t to = (region * s->channels + first) * bins;
    bool exists = roi[0] >= 0 && roi[0] < (float)s->images;
    int64_t image = exists ? (int64_t)roi[0] : 0;
    int64_t from = image * s->height * s->width * blocks * BLOCK + first;
    const void *map = float_at(job->maps, from, bf16);
    struct roi_span across =
        roi_span_of(roi[1] * s->scale, roi[3] * s->scale, s->width, s->columns);
    struct roi_span down = roi_span_of(roi[2] * s->scale, roi[4] * s->scale, s->height, s->rows);
    for (int64_t k = 0; k < bins; k++) {
        struct roi_bin rows = roi_bin_of(&down, k / s->columns), columns;
        columns = roi_bin_of(&across, k % s->columns);
        pool_bin(s, map, exists ? rows : (struct roi_bin){0, 0}, columns, bin, k, bf16);
    }
    for (int64_t c = 0; c < BLOCK && first + c < s->channels; c++)
        for (int64_t k = 0; k < bins; k++)
            copy_number(y, to + c * bins + k, bin, k * BLOCK + c, bf16);
}

static void pool_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    if (job->state->bf16)
        pool_block(job, task, thread, true);
    else
        pool_block(job, task, thread, false);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->in[1], args->out[0], args->workspace, NULL};
    job.bins = (char *)job.maps + state->map_bytes;
    pool_run(args->pool, state->images * state->height, turn_row, &job);
    pool_run(args->pool, state->regions * blocks_of(state->channels), pool_task, &job);
}

REGISTER_KERNEL(roi_pool_max) = {
    NATIVE(roi_pool_max), .ops = OPS("MaxRoiPool"), .state_size = sizeof(struct kernel_state),
    .plan = plan,         .workspace = workspace,   .launch = launch,
};
