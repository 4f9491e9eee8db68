/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalisation of channels-last images: squares of all channels of a position go
 * to a row with zeros at both ends, over which the window slides as unaligned vectors.
 */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"

enum { TILE_ELEMENTS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y, *squares; /* squares: per thread `stride` floats */
    int64_t positions, channels, size, before, stride, positions_per_tile;
    float alpha, beta, bias;
    int threads;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (!query_all_dtype(q, DTYPE_F32) || q->node->post_count)
        return UNSUPPORTED(why, "only f32 without a fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    s->channels = q->in[0].shape.dim[1];
    s->positions = s->channels ? shape_count(&q->in[0].shape) / s->channels : 0;
    s->positions_per_tile =
        s->channels && s->channels < TILE_ELEMENTS ? TILE_ELEMENTS / s->channels : 1;
    s->size = node_int(q->node, "size", 1);
    s->before = (s->size - 1) / 2;
    /* Squares with room for the window and for the tail of a vector. */
    s->stride = (s->channels + s->size + VL + 15) / 16 * 16;
    s->alpha = (float)(node_float(q->node, "alpha", 1e-4) / (double)s->size);
    s->beta = (float)node_float(q->node, "beta", 0.75);
    s->bias = (float)node_float(q->node, "bias", 1);
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * s->stride) * sizeof(float);
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

static void normalise(const struct kernel_state *job, const float *x, float *y, float *squares)
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
    const struct kernel_state *job = context;
    int64_t first = tile * job->positions_per_tile, last = first + job->positions_per_tile;
    float *squares = job->squares + thread * job->stride;
    memset(squares, 0, (size_t)job->stride * sizeof(float));
    for (int64_t p = first; p < last && p < job->positions; p++)
        normalise(job, job->x + p * job->channels, job->y + p * job->channels, squares);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    job.squares = args->workspace;
    pool_run(args->pool, (job.positions + job.positions_per_tile - 1) / job.positions_per_tile,
             run_tile, &job);
}

REGISTER_KERNEL(lrn_nhwc) = {
    NATIVE(lrn_nhwc), .ops = OPS("LRN"),      .state_size = sizeof(struct kernel_state),
    .plan = plan,     .workspace = workspace, .launch = launch,
};
