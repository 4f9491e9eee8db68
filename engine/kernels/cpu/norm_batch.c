/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalization with given statistics: y = act(x factor + shift) per channel. The factors are
 * made at the head of each launch (a few vectors of work), so parameters may come at run time. x
 * and y may be bf16, the parameters are floats even then.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 16384 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x;
    const float *factor, *shift;
    void *y;
    float epsilon;
    bool bf16;               /* x and y */
    int64_t channels, plane; /* plane: elements per channel and image */
    int64_t rows, rows_per_tile;
    enum function act;
    float a, b;
    bool channels_last; /* a row is all channels of a position; else one channel of an image */
};

static enum status check_dtypes(const struct kernel_query *q, struct error *why)
{
    bool bf16 = q->in[0].dtype == DTYPE_BF16;
    bool fits = q->in[0].dtype == q->out[0].dtype && (bf16 || q->in[0].dtype == DTYPE_F32);
    for (int k = 1; k < q->in_count; k++)
        fits = fits && q->in[k].dtype == DTYPE_F32;
    return fits ? STATUS_OK : UNSUPPORTED(why, "only f32 or bf16, with parameters of f32");
}

static enum status check_posts(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    if (node->post_count > 1 || (node->post_count == 1 && node->posts[0].kind != POST_ACT))
        return UNSUPPORTED(why, "one activation at most as fused epilogue");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(check_dtypes(q, why));
    if (node_int(q->node, "training_mode", 0) || q->out_count > 1)
        return UNSUPPORTED(why, "no training mode");
    TRY(check_posts(q, why));
    bool plain = desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0]);
    bool last = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    if (!plain && !last)
        return UNSUPPORTED(why, "input and output lie differently");
    const struct shape *x = &q->in[0].shape;
    s->epsilon = (float)node_float(q->node, "epsilon", 1e-5);
    s->channels = x->rank > 1 ? x->dim[1] : 1;
    s->plane = x->rank > 2 ? shape_span(x, 2, x->rank) : x->rank > 1 ? 1 : shape_count(x);
    if (q->node->post_count) {
        s->act = q->node->posts[0].act;
        s->a = q->node->posts[0].a;
        s->b = q->node->posts[0].b;
    }
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    s->channels_last = last || x->rank == 2;
    int64_t row = s->channels_last ? s->channels : s->plane;
    s->rows = row ? shape_count(x) / row : 0;
    s->rows_per_tile = rows_of_tile(s->rows, row, TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return 2 * (size_t)s->channels * sizeof(float);
}

/* Rows of all channels: factor and shift step with x. */
SIMD_INLINE void channel_rows(const struct kernel_state *job, int64_t first, int64_t last,
                              bool bf16)
{
    int64_t n = job->channels;
    for (int64_t row = first; row < last; row++) {
        const void *x = float_at(job->x, row * n, bf16);
        void *y = out_at(job->y, row * n, bf16);
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            vf value = vf_fma(vf_read_m(x, i, lanes, bf16), vf_load_m(job->factor + i, lanes),
                              vf_load_m(job->shift + i, lanes));
            vf_write_m(y, i, lanes, vf_act(value, job->act, job->a, job->b), bf16);
        }
    }
}

/* Rows of one channel. */
SIMD_INLINE void plane_rows(const struct kernel_state *job, int64_t first, int64_t last, bool bf16)
{
    int64_t n = job->plane;
    for (int64_t row = first; row < last; row++) {
        vf factor = vf_set1(job->factor[row % job->channels]);
        vf shift = vf_set1(job->shift[row % job->channels]);
        const void *x = float_at(job->x, row * n, bf16);
        void *y = out_at(job->y, row * n, bf16);
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            vf value = vf_fma(vf_read_m(x, i, lanes, bf16), factor, shift);
            vf_write_m(y, i, lanes, vf_act(value, job->act, job->a, job->b), bf16);
        }
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = smaller(last, job->rows);
    if (job->channels_last && job->bf16)
        channel_rows(job, first, last, true);
    else if (job->channels_last)
        channel_rows(job, first, last, false);
    else if (job->bf16)
        plane_rows(job, first, last, true);
    else
        plane_rows(job, first, last, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    const float *scale = args->in[1], *bias = args->in[2], *mean = args->in[3];
    const float *variance = args->in[4];
    float *factor = args->workspace, *shift = factor + plan->channels;
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    job.factor = factor;
    job.shift = shift;
    for (int64_t c = 0; c < job.channels; c++) {
        factor[c] = scale[c] / sqrtf(variance[c] + job.epsilon);
        shift[c] = bias[c] - mean[c] * factor[c];
    }
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(norm_batch) = {
    NATIVE(norm_batch), .ops = OPS("BatchNormalization"), .state_size = sizeof(struct kernel_state),
    .plan = plan,       .workspace = workspace,           .launch = launch,
};
