/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropyLoss of f32. Few classes: VL positions side by side, read with a step, or
 * turned round first where the classes of a position lie together. Many classes that lie together:
 * a vector walks along them. The log softmax is only written where somebody wants it, else the loss
 * is log(sum) + largest - x[label]. Sums go over positions in their order, whatever the threads.
 */
#include <math.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"

enum { TURNED_MAX = 64, TILE_FLOATS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x, *weights; /* weights may be NULL */
    const void *labels;
    bool wide;                       /* labels are i64 */
    float *loss, *weight, *log_prob; /* weight and log_prob may be NULL */
    struct axis axis;
    int64_t ignored, per_tile; /* positions */
    bool ignores;
    bool weighted, kept, mean; /* kept: the losses themselves are wanted */
    bool log_probs;            /* are wanted, too */
    int64_t positions;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    const struct desc *weights = query_in(q, 2);
    if (q->in[0].dtype != DTYPE_F32 || (weights && weights->dtype != DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only labels of i32 and i64");
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
    if (shape_count(&q->in[0].shape) == 0)
        return UNSUPPORTED(why, "nothing to compute");
    const char *reduction = node_string(q->node, "reduction", "mean");
    s->weighted = weights;
    s->kept = strcmp(reduction, "none") == 0;
    s->mean = strcmp(reduction, "mean") == 0;
    s->log_probs = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->axis = axis_at(&q->in[0].shape, 1);
    s->ignores = node_attr(q->node, "ignore_index") != NULL;
    s->ignored = node_int(q->node, "ignore_index", 0);
    s->positions = s->axis.outer * s->axis.inner;
    s->per_tile = rows_of_tile(s->positions, s->axis.size, TILE_FLOATS, q->threads);
    s->per_tile = round_up(s->per_tile, VL);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->kept ? 0 : 2 * (size_t)s->positions * sizeof(float);
}

/* Loss of one position, from the logarithm of the sum of exponentials. `at` is the place of its
 * class 0. A label that cannot be is NAN: the reference fails there. */
static void put_loss(const struct kernel_state *job, int64_t position, int64_t at, float shift)
{
    int64_t label = job->wide ? ((const int64_t *)job->labels)[position]
                              : ((const int32_t *)job->labels)[position];
    float weight = 1, loss;
    if (job->ignores && label == job->ignored) {
        weight = 0;
        loss = 0;
    } else if (label < 0 || label >= job->axis.size) {
        loss = NAN;
    } else {
        weight = job->weights ? job->weights[label] : 1;
        loss = (shift - job->x[at + label * job->axis.inner]) * weight;
    }
    job->loss[position] = loss;
    if (job->weight)
        job->weight[position] = weight;
}

/* log(sum e^x) of up to VL neighbours whose classes are `step` apart. */
SIMD_INLINE vf lanes_shift(const float *x, int64_t classes, int64_t step, vm lanes)
{
    vf largest = vf_set1(-INFINITY), sum = vf_zero();
    for (int64_t k = 0; k < classes; k++)
        largest = vf_max(largest, vf_load_m(x + k * step, lanes));
    for (int64_t k = 0; k < classes; k++)
        sum = vf_add(sum, vf_exp_fast(vf_sub(vf_load_m(x + k * step, lanes), largest)));
    return vf_add(largest, vf_log(sum));
}

/* Positions [first, first + count) of one outer index, count <= VL; inner > 1. */
static void run_columns(const struct kernel_state *job, int64_t outer, int64_t first, int64_t count)
{
    int64_t classes = job->axis.size, inner = job->axis.inner;
    int64_t start = outer * classes * inner + first;
    vm lanes = vm_first(count);
    vf shift = lanes_shift(job->x + start, classes, inner, lanes);
    float shifts[VL];
    vf_store(shifts, shift);
    for (int64_t k = 0; job->log_prob && k < classes; k++)
        vf_store_m(job->log_prob + start + k * inner, lanes,
                   vf_sub(vf_load_m(job->x + start + k * inner, lanes), shift));
    for (int64_t k = 0; k < count; k++)
        put_loss(job, outer * inner + first + k, start + k, shifts[k]);
}

static void put_row(const struct kernel_state *job, int64_t row, float shift)
{
    int64_t classes = job->axis.size, at = row * classes;
    for (int64_t k = 0; job->log_prob && k < classes; k++)
        job->log_prob[at + k] = job->x[at + k] - shift;
    put_loss(job, row, at, shift);
}

/* VL rows of few classes, turned round. */
static void run_turned(const struct kernel_state *job, int64_t first, int64_t count)
{
    float turned[TURNED_MAX * VL] = {0}, shifts[VL];
    int64_t classes = job->axis.size;
    for (int64_t r = 0; r < count; r++)
        for (int64_t k = 0; k < classes; k++)
            turned[k * VL + r] = job->x[(first + r) * classes + k];
    vf_store(shifts, lanes_shift(turned, classes, VL, vm_first(VL)));
    for (int64_t r = 0; r < count; r++)
        put_row(job, first + r, shifts[r]);
}

/* One row of many classes. */
static float row_shift(const float *x, int64_t n)
{
    vf low = vf_set1(-INFINITY), largest = low, sum = vf_zero();
    for (int64_t i = 0; i < n; i += VL) {
        vm lanes = vm_first(n - i);
        largest = vf_max(largest, vf_select(lanes, vf_load_m(x + i, lanes), low));
    }
    float highest = vf_max_of(largest);
    for (int64_t i = 0; i < n; i += VL) {
        vm lanes = vm_first(n - i);
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + i, lanes), vf_set1(highest)));
        sum = vf_add(sum, vf_select(lanes, e, vf_zero()));
    }
    return highest + logf(vf_sum(sum));
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t inner = job->axis.inner, all = job->positions;
    int64_t end = (tile + 1) * job->per_tile < all ? (tile + 1) * job->per_tile : all;
    for (int64_t at = tile * job->per_tile, count; at < end; at += count) {
        count = end - at < VL ? end - at : VL;
        if (inner > 1) {
            int64_t rest = inner - at % inner;
            count = smaller(count, rest);
            run_columns(job, at / inner, at % inner, count);
        } else if (job->axis.size <= TURNED_MAX) {
            run_turned(job, at, count);
        } else {
            count = 1;
            put_row(job, at, row_shift(job->x + at * job->axis.size, job->axis.size));
        }
    }
}

static void reduce(const struct kernel_state *job, float *y)
{
    double sum = 0, total = 0;
    for (int64_t k = 0; k < job->positions; k++) {
        sum += (double)job->loss[k];
        total += (double)job->weight[k];
    }
    *y = (float)(job->mean ? sum / total : sum);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.labels = args->in[1];
    job.weights = job.weighted ? args->in[2] : NULL;
    job.loss = job.kept ? args->out[0] : args->workspace;
    job.weight = job.kept ? NULL : job.loss + job.positions;
    job.log_prob = job.log_probs ? args->out[1] : NULL;
    pool_run(args->pool, divide_up(job.positions, job.per_tile), run_tile, &job);
    if (!job.kept)
        reduce(&job, args->out[0]);
}

REGISTER_KERNEL(cross_entropy_lines) = {
    NATIVE(cross_entropy_lines),
    .ops = OPS("SoftmaxCrossEntropyLoss"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
