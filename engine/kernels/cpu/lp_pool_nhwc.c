/* SPDX-License-Identifier: Apache-2.0
 *
 * LpPool on channels-last images, f32: vectors over channels, and the window's taps inside. Powers
 * are products, the root of p = 1 and 2 is that of the processor.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd_math.h"

enum { VECTORS = 4, POWER_MAX = 16 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y;
    struct window w; /* rank 3 */
    int64_t images, channels;
    int power;
    const struct pool_span *columns; /* of each output column */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct window window;
    int64_t power = node_int(q->node, "p", 2);
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last");
    if (power < 1 || power > POWER_MAX)
        return UNSUPPORTED(why, "p of %lld", (long long)power);
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    s->images = q->in[0].shape.dim[0];
    s->channels = q->in[0].shape.dim[1];
    s->power = (int)power;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->w.out[2] * sizeof(struct pool_span);
}

SIMD_INLINE vf add_power(vf sum, vf x, int power)
{
    if (power == 2)
        return vf_fma(x, x, sum);
    vf product = x = vf_abs(x);
    for (int k = 1; k < power; k++)
        product = vf_mul(product, x);
    return vf_add(sum, product);
}

SIMD_INLINE void add_tap(vf sum[VECTORS], const float *tap, const vm m[VECTORS], int power)
{
    for (int v = 0; v < VECTORS; v++)
        sum[v] = add_power(sum[v], vf_load_m(tap + v * VL, m[v]), power);
}

SIMD_INLINE vf root(vf sum, int power)
{
    if (power <= 2)
        return power == 1 ? sum : vf_sqrt(sum);
    return vf_pow(sum, vf_set1(1 / (float)power));
}

/* All channels of one position; x is where tap 0, 0, 0 is. */
SIMD_INLINE void pool_position(const struct kernel_state *job, const struct pool_span *const s[3],
                               const float *x, float *y, int power)
{
    const struct window *w = &job->w;
    int64_t column = w->dilation[2] * job->channels;
    int64_t row = w->dilation[1] * w->in[2] * job->channels;
    int64_t slice = w->dilation[0] * w->in[1] * w->in[2] * job->channels;
    for (int64_t at = 0; at < job->channels; at += VECTORS * VL) {
        vf sum[VECTORS];
        vm m[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            sum[v] = vf_zero();
            m[v] = vm_first(job->channels - at - v * VL);
        }
        for (int64_t a = s[0]->first; a < s[0]->last; a++)
            for (int64_t b = s[1]->first; b < s[1]->last; b++)
                for (int64_t c = s[2]->first; c < s[2]->last; c++)
                    add_tap(sum, x + at + a * slice + b * row + c * column, m, power);
        for (int v = 0; v < VECTORS; v++)
            vf_store_m(y + at + v * VL, m[v], root(sum[v], power));
    }
}

/* One row of output positions. */
static void run_row(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    const struct window *w = &job->w;
    struct pool_row row = pool_row_of(w, tile);
    const struct pool_span *s[3] = {&row.slices, &row.rows, job->columns};
    float *y = job->y + tile * w->out[2] * job->channels;
    for (int64_t o = 0; o < w->out[2]; o++, s[2]++, y += job->channels) {
        const float *x = job->x + (row.line * w->in[2] + s[2]->at) * job->channels;
        if (job->power == 1)
            pool_position(job, s, x, y, 1);
        else if (job->power == 2)
            pool_position(job, s, x, y, 2);
        else
            pool_position(job, s, x, y, job->power);
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    struct pool_span *columns = args->workspace;
    job.x = args->in[0];
    job.y = args->out[0];
    job.columns = columns;
    for (int64_t o = 0; o < job.w.out[2]; o++)
        columns[o] = pool_span_of(&job.w, 2, o);
    pool_run(args->pool, job.images * job.w.out[0] * job.w.out[1], run_row, &job);
}

REGISTER_KERNEL(lp_pool_nhwc) = {
    NATIVE(lp_pool_nhwc), .ops = OPS("LpPool"),   .state_size = sizeof(struct kernel_state),
    .plan = plan,         .workspace = workspace, .launch = launch,
};
