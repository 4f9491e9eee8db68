/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalisation of channels-last images, and its gradient: squares of all channels
 * of a position go to a row with zeros at both ends, over which the window slides as unaligned
 * vectors. The gradient's terms go to a second row, over which the window slides the other way
 * round. Rows hold floats also where images are of bf16, which gradients never are.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 8192 };

enum { SQUARES, TERMS, POWERS, ROWS }; /* LRN needs the first alone */

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x, *dy; /* dy: of the gradient */
    void *y;            /* or dx */
    float *rows;        /* per thread ROWS of `stride` floats */
    int64_t positions, channels, size, before, stride, positions_per_tile;
    float alpha, beta, bias;
    int threads;
    bool gradient, bf16;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->gradient = strcmp(q->node->op->name, "LRNGradient") == 0;
    s->bf16 = !s->gradient && query_all_dtype(q, DTYPE_BF16);
    if (!s->bf16 && !query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, s->gradient ? "only f32" : "only f32 or bf16");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->in[s->gradient]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    s->channels = q->in[0].shape.dim[1];
    s->positions = s->channels ? shape_count(&q->in[0].shape) / s->channels : 0;
    s->positions_per_tile = rows_of_tile(s->positions, s->channels, TILE_ELEMENTS, q->threads);
    int64_t size = node_int(q->node, "size", 1), before = (size - 1) / 2;
    /* Channels that are not there add nothing. */
    s->before = smaller(before, s->channels);
    s->size = s->before + 1 + smaller(size - 1 - before, s->channels);
    /* Squares with floats for the window and for the tail of a vector. */
    s->stride = (s->channels + s->size + VL + 15) / 16 * 16;
    s->alpha = (float)(node_float(q->node, "alpha", 1e-4) / (double)size);
    s->beta = (float)node_float(q->node, "beta", 0.75);
    s->bias = (float)node_float(q->node, "bias", 1);
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * s->stride * (s->gradient ? ROWS : 1)) * sizeof(float);
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

SIMD_INLINE vf window_sum(const struct kernel_state *job, const float *row)
{
    vf sum = vf_zero();
    for (int64_t k = 0; k < job->size; k++)
        sum = vf_add(sum, vf_load(row + k));
    return sum;
}

SIMD_INLINE void square(const struct kernel_state *job, int64_t at, float *squares, bool bf16)
{
    for (int64_t c = 0; c < job->channels; c += VL) {
        vm lanes = vm_first(job->channels - c);
        vf value = vf_read_m(job->x, at + c, lanes, bf16);
        vf_store_m(squares + job->before + c, lanes, vf_mul(value, value));
    }
}

SIMD_INLINE vf base_at(const struct kernel_state *job, const float *squares, int64_t c)
{
    return vf_fma(vf_set1(job->alpha), window_sum(job, squares + c), vf_set1(job->bias));
}

SIMD_INLINE void normalise(const struct kernel_state *job, int64_t at, float *squares, bool bf16)
{
    square(job, at, squares, bf16);
    for (int64_t c = 0; c < job->channels; c += VL) {
        vm lanes = vm_first(job->channels - c);
        vf power = inverse_power(base_at(job, squares, c), job->beta);
        vf value = vf_read_m(job->x, at + c, lanes, bf16);
        vf_write_m(job->y, at + c, lanes, vf_mul(value, power), bf16);
    }
}

static void find_gradient(const struct kernel_state *job, int64_t at, float *rows)
{
    const float *x = (const float *)job->x + at, *dy = (const float *)job->dy + at;
    float *dx = (float *)job->y + at, *terms = rows + TERMS * job->stride;
    float *powers = rows + POWERS * job->stride, *squares = rows + SQUARES * job->stride;
    int64_t after = job->size - 1 - job->before;
    vf factor = vf_set1(2 * job->alpha * job->beta);
    square(job, at, squares, false);
    for (int64_t c = 0; c < job->channels; c += VL) {
        vm lanes = vm_first(job->channels - c);
        vf base = base_at(job, squares, c);
        vf scaled = vf_mul(vf_load_m(dy + c, lanes), inverse_power(base, job->beta));
        vf_store(powers + c, scaled);
        vf_store_m(terms + after + c, lanes, vf_div(vf_mul(scaled, vf_load_m(x + c, lanes)), base));
    }
    for (int64_t c = 0; c < job->channels; c += VL) {
        vm lanes = vm_first(job->channels - c);
        vf shared = vf_mul(factor, window_sum(job, terms + c));
        vf_store_m(dx + c, lanes, vf_fnma(vf_load_m(x + c, lanes), shared, vf_load(powers + c)));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    int64_t first = tile * job->positions_per_tile, last = first + job->positions_per_tile;
    int64_t floats = job->stride * (job->gradient ? ROWS : 1);
    float *rows = job->rows + thread * floats;
    memset(rows, 0, (size_t)floats * sizeof(float));
    for (int64_t p = first; p < last && p < job->positions; p++)
        if (job->gradient)
            find_gradient(job, p * job->channels, rows);
        else if (job->bf16)
            normalise(job, p * job->channels, rows, true);
        else
            normalise(job, p * job->channels, rows, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.dy = args->in[0];
    job.x = args->in[job.gradient];
    job.y = args->out[0];
    job.rows = args->workspace;
    pool_run(args->pool, divide_up(job.positions, job.positions_per_tile), run_tile, &job);
}

REGISTER_KERNEL(lrn_nhwc) = {
    NATIVE(lrn_nhwc), .ops = OPS("LRN", "LRNGradient"), .state_size = sizeof(struct kernel_state),
    .plan = plan,     .workspace = workspace,           .launch = launch,
};
