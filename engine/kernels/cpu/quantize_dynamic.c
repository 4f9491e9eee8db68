/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicQuantizeLinear: the range of the tensor tile by tile, then its elements as QuantizeLinear
 * does them. Scale and zero point are computed in f32 with the reference's operations, since ties
 * decide the results.
 */
#include "engine/kernels/lib/quantize_lines.h"
#include "engine/kernels/lib/workspace.h"

/* The plan; a launch completes a copy of it. */
struct kernel_state {
    const float *x;
    uint8_t *y;    /* NULL: not wanted */
    float *ranges; /* per tile: lowest and highest */
    int64_t count, tiles;
    float scale;
    int32_t zero;
    bool wants[3];
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    for (int k = 0; k < q->out_count && k < 3; k++)
        s->wants[k] = q->out[k].dtype != DTYPE_NONE;
    if (!desc_is_dense(&q->in[0]) || (s->wants[0] && !desc_same_memory(&q->in[0], &q->out[0])))
        return UNSUPPORTED(why, "input and result do not lie alike");
    s->count = shape_count(&q->in[0].shape);
    s->tiles = divide_up(s->count, QUANTIZE_TILE);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    size_t bytes = 0;
    take_floats(NULL, &bytes, 2 * s->tiles);
    return bytes;
}

/* Widened to hold 0; NaN is no part of it. */
static void find_range(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    const float *x = job->x + tile * QUANTIZE_TILE;
    int64_t n = smaller(job->count - tile * QUANTIZE_TILE, QUANTIZE_TILE), i = 0;
    vf low[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    vf high[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    (void)thread;
    for (; i + 4 * VL <= n; i += 4 * VL)
        for (int j = 0; j < 4; j++) {
            vf v = vf_load(x + i + j * VL);
            low[j] = vf_min(v, low[j]); /* the second where the first is NaN */
            high[j] = vf_max(v, high[j]);
        }
    for (; i < n; i += VL) {
        vf v = vf_load_m(x + i, vm_first(n - i));
        low[0] = vf_min(v, low[0]);
        high[0] = vf_max(v, high[0]);
    }
    for (int j = 1; j < 4; j++) {
        low[0] = vf_min(low[0], low[j]);
        high[0] = vf_max(high[0], high[j]);
    }
    job->ranges[2 * tile] = vf_min_of(low[0]);
    job->ranges[2 * tile + 1] = vf_max_of(high[0]);
}

static void quantize_tile(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    int64_t last = smaller((tile + 1) * QUANTIZE_TILE, job->count);
    vf scale = vf_set1(job->scale), zero = vf_set1((float)job->zero);
    vf high = vf_set1(UINT8_MAX);
    (void)thread;
    for (int64_t at = tile * QUANTIZE_TILE; at < last; at += QUANTIZE_BLOCK) {
        int32_t words[QUANTIZE_BLOCK];
        const float *x = job->x + at;
        uint8_t *y = job->y + at;
        int64_t n = smaller(last - at, QUANTIZE_BLOCK);
        for (int64_t i = 0; i < n; i += VL) {
            vf v = vf_load_m(x + i, vm_first(n - i));
            vi_store(words + i, quantize_vector(v, scale, zero, vf_zero(), high));
        }
        for (int64_t i = 0; i < n; i++)
            y[i] = (uint8_t)words[i];
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    float low = 0, high = 0;
    job.x = args->in[0];
    job.ranges = args->workspace;
    pool_run(args->pool, job.tiles, find_range, &job);
    for (int64_t k = 0; k < job.tiles; k++) {
        low = fminf(low, job.ranges[2 * k]);
        high = fmaxf(high, job.ranges[2 * k + 1]);
    }
    job.scale = high == low ? 1 : (high - low) / 255;
    job.zero = (int32_t)quantize_saturate(DTYPE_U8, (double)(-low / job.scale));
    if (job.wants[0]) {
        job.y = args->out[0];
        pool_run(args->pool, job.tiles, quantize_tile, &job);
    }
    if (job.wants[1])
        *(float *)args->out[1] = job.scale;
    if (job.wants[2])
        *(uint8_t *)args->out[2] = (uint8_t)job.zero;
}

REGISTER_KERNEL(quantize_dynamic) = {
    NATIVE(quantize_dynamic),
    .ops = OPS("DynamicQuantizeLinear"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
