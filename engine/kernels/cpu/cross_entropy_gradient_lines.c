/* SPDX-License-Identifier: Apache-2.0
 *
 * CrossEntropyGradient of f32: the softmax of a line, times what its position counts, less that at
 * the label. Classes that lie together: a vector walks along them. Else VL positions side by side.
 * What positions count in a mean is summed in their order, whatever the threads.
 */
#include <math.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"

enum { TILE_FLOATS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *dy, *x, *weights; /* weights may be NULL */
    const void *labels;
    float *dx;
    bool wide;            /* labels are i64 */
    bool each, mean, log; /* each: a gradient per position; log: without the softmax */
    bool ignores, weighted;
    int64_t ignored, per_tile; /* positions */
    struct axis axis;
    int64_t positions;
    float scale; /* of all positions */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct desc *weights = query_in(q, 3);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32 || q->in[1].dtype != DTYPE_F32 ||
        (weights && weights->dtype != DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->in[2].dtype != DTYPE_I32 && q->in[2].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only labels of i32 and i64");
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the output is not plain");
    if (shape_count(&q->in[1].shape) == 0)
        return UNSUPPORTED(why, "nothing to compute");
    const char *reduction = node_string(q->node, "reduction", "mean");
    s->each = strcmp(reduction, "none") == 0;
    s->mean = strcmp(reduction, "mean") == 0;
    s->log = strcmp(node_string(q->node, "of", "softmax"), "log") == 0;
    s->weighted = weights;
    s->wide = q->in[2].dtype == DTYPE_I64;
    s->axis = axis_at(&q->in[1].shape, 1);
    s->ignores = node_attr(q->node, "ignore_index") != NULL;
    s->ignored = node_int(q->node, "ignore_index", 0);
    s->positions = s->axis.outer * s->axis.inner;
    s->per_tile = rows_of_tile(s->positions, s->axis.size, TILE_FLOATS, q->threads);
    s->per_tile = round_up(s->per_tile, VL);
    return STATUS_OK;
}

/* What a position's loss counts, and its label; NAN for one that cannot be, where the reference
 * fails. */
static float weight_at(const struct kernel_state *job, int64_t position, int64_t *label)
{
    *label = job->wide ? ((const int64_t *)job->labels)[position]
                       : ((const int32_t *)job->labels)[position];
    if (job->ignores && *label == job->ignored)
        *label = -1;
    else if (*label < 0 || *label >= job->axis.size)
        return NAN;
    return *label < 0 ? 0 : job->weights ? job->weights[*label] : 1;
}

/* The gradient by the loss of one position. */
static float factor_at(const struct kernel_state *job, int64_t position, int64_t *label)
{
    float weight = weight_at(job, position, label);
    return *label < 0 && weight == 0 ? 0 : weight * job->scale * job->dy[job->each ? position : 0];
}

static void fill_row(float *dx, float value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = value;
}

/* One position whose classes lie together. */
static void run_row(const struct kernel_state *job, int64_t row)
{
    int64_t n = job->axis.size, label;
    const float *x = job->x + row * n;
    float *dx = job->dx + row * n, factor = factor_at(job, row, &label);
    if (job->log || label < 0) {
        fill_row(dx, isnan(factor) ? factor : 0, n);
    } else {
        vf low = vf_set1(-INFINITY), largest = low, sum = vf_zero();
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            largest = vf_max(largest, vf_select(lanes, vf_load_m(x + i, lanes), low));
        }
        vf highest = vf_set1(vf_max_of(largest));
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            vf e = vf_exp_fast(vf_sub(vf_load_m(x + i, lanes), highest));
            vf_store_m(dx + i, lanes, e);
            sum = vf_add(sum, vf_select(lanes, e, vf_zero()));
        }
        vf scale = vf_set1(factor / vf_sum(sum));
        for (int64_t i = 0; i < n; i += VL) {
            vm lanes = vm_first(n - i);
            vf_store_m(dx + i, lanes, vf_mul(scale, vf_load_m(dx + i, lanes)));
        }
    }
    if (label >= 0 && label < n)
        dx[label] -= factor;
}

/* `count` <= VL neighbours whose classes are `inner` apart. */
static void run_columns(const struct kernel_state *job, int64_t outer, int64_t first, int64_t count)
{
    int64_t n = job->axis.size, step = job->axis.inner, start = outer * n * step + first;
    int64_t label[VL];
    float factor[VL] = {0};
    const float *x = job->x + start;
    float *dx = job->dx + start;
    vm lanes = vm_first(count);
    for (int64_t k = 0; k < count; k++)
        factor[k] = factor_at(job, outer * step + first + k, &label[k]);
    vf largest = vf_set1(-INFINITY), sum = vf_zero(), scale = vf_load(factor);
    for (int64_t k = 0; k < n && !job->log; k++)
        largest = vf_max(largest, vf_load_m(x + k * step, lanes));
    for (int64_t k = 0; k < n && !job->log; k++) {
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + k * step, lanes), largest));
        vf_store_m(dx + k * step, lanes, e);
        sum = vf_add(sum, e);
    }
    scale = job->log ? vf_mul(scale, vf_zero()) : vf_div(scale, sum);
    for (int64_t k = 0; k < n; k++) {
        vf e = job->log ? vf_set1(1.0f) : vf_load_m(dx + k * step, lanes);
        vf_store_m(dx + k * step, lanes, vf_mul(scale, e));
    }
    for (int64_t k = 0; k < count; k++)
        if (label[k] >= 0 && label[k] < n)
            dx[label[k] * step + k] -= factor[k];
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t inner = job->axis.inner, all = job->positions, count;
    int64_t end = (tile + 1) * job->per_tile < all ? (tile + 1) * job->per_tile : all;
    for (int64_t at = tile * job->per_tile; at < end; at += count) {
        int64_t rest = inner - at % inner;
        count = inner == 1 ? 1 : end - at < VL ? end - at : VL;
        count = smaller(count, rest);
        if (inner == 1)
            run_row(job, at);
        else
            run_columns(job, at / inner, at % inner, count);
    }
}

static float share_of_each(const struct kernel_state *job)
{
    double total = 0;
    int64_t label;
    for (int64_t k = 0; k < job->positions; k++)
        total += (double)weight_at(job, k, &label);
    return (float)(1 / total);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.dy = args->in[0];
    job.x = args->in[1];
    job.labels = args->in[2];
    job.weights = job.weighted ? args->in[3] : NULL;
    job.dx = args->out[0];
    job.scale = job.mean ? share_of_each(&job) : 1;
    pool_run(args->pool, divide_up(job.positions, job.per_tile), run_tile, &job);
}

REGISTER_KERNEL(cross_entropy_gradient_lines) = {
    NATIVE(cross_entropy_gradient_lines),
    .ops = OPS("CrossEntropyGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
