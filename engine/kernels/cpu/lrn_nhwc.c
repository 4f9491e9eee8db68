/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalisation of channels-last images: squares of all channels of a position go
 * to a row with zeros at both ends, over which the window slides as unaligned vectors.
 */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"

enum { TILE_ELEMENTS = 8192 };

struct job {
    const float *x;
    float *y, *squares; /* squares: per thread `stride` floats */
    int64_t positions, channels, size, before, stride, positions_per_tile;
    float alpha, beta, bias;
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32) || q->node->post_count)
        return UNSUPPORTED(why, "only f32 without a fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    return STATUS_OK;
}

/* Squares with room for the window and for the tail of a vector. */
static int64_t stride_of(const struct kernel_query *q)
{
    int64_t floats = q->in[0].shape.dim[1] + node_int(q->node, "size", 1) + VL;
    return (floats + 15) / 16 * 16;
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    return (size_t)(q->threads * stride_of(q)) * sizeof(float);
}

/* base^-beta, base > 0; 3/4 and 1/2 are what networks use. */
SIMD_INLINE vf inverse_power(vf base, float beta)
{
    vf root = vf_sqrt(base), one = vf_set1(1.0f);
    if (beta == 0.75f)
        return vf_div(one, vf_mul(root, vf_sqrt(root)));
    if (beta == 0.5f)
        return vf_div(one, root);
    return vf_exp(vf_mul(vf_set1(-beta), vf_log(base)));
}

static void normalise(const struct job *job, const float *x, float *y, float *squares)
{
    int64_t n = job->channels;
    for (int64_t c = 0; c < n; c += VL) {
        vm lanes = vm_first(n - c);
        vf value = vf_load_m(x + c, lanes);
        vf_store_m(squares + job->before + c, lanes, vf_mul(value, value));
    }
    for (int64_t c = 0; c < n; c += VL) {
        vm lanes = vm_first(n - c);
        vf sum = vf_zero();
        for (int64_t k = 0; k < job->size; k++)
            sum = vf_add(sum, vf_load(squares + c + k));
        vf base = vf_fma(vf_set1(job->alpha), sum, vf_set1(job->bias));
        vf_store_m(y + c, lanes, vf_mul(vf_load_m(x + c, lanes), inverse_power(base, job->beta)));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    int64_t first = tile * job->positions_per_tile, last = first + job->positions_per_tile;
    float *squares = job->squares + thread * job->stride;
    memset(squares, 0, (size_t)job->stride * sizeof(float));
    for (int64_t p = first; p < last && p < job->positions; p++)
        normalise(job, job->x + p * job->channels, job->y + p * job->channels, squares);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    int64_t channels = q->in[0].shape.dim[1], size = node_int(q->node, "size", 1);
    struct job job = {
        .x = args->in[0],
        .y = args->out[0],
        .squares = args->workspace,
        .positions = channels ? shape_count(&q->in[0].shape) / channels : 0,
        .channels = channels,
        .size = size,
        .before = (size - 1) / 2,
        .stride = stride_of(q),
        .positions_per_tile = channels && channels < TILE_ELEMENTS ? TILE_ELEMENTS / channels : 1,
        .alpha = (float)(node_float(q->node, "alpha", 1e-4) / (double)size),
        .beta = (float)node_float(q->node, "beta", 0.75),
        .bias = (float)node_float(q->node, "bias", 1),
    };
    pool_run(args->pool, (job.positions + job.positions_per_tile - 1) / job.positions_per_tile,
             run_tile, &job);
}

REGISTER_KERNEL(lrn_nhwc) = {
    NATIVE(lrn_nhwc),           .ops = OPS("LRN"),    .supports = supports,
    .old_workspace = workspace, .old_launch = launch,
};
