/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropyLoss: a warp per label finds the logarithm of its line's sum of exponentials,
 * the loss, and the log softmax if it is wanted; for "sum" and "mean" one block then adds up all
 * losses and weights, in an order that does not depend on how blocks run. */
#include "engine/kernels/cuda/lib/query.h"

enum { SCORES, LABELS, WEIGHTS };

struct loss {
    const float *x, *weights; /* weights may be NULL */
    const void *labels;
    float *y, *log_prob;    /* log_prob may be NULL */
    float *losses, *totals; /* per label; totals: weights, NULL with reduction "none" */
    unsigned lines, classes;
    struct divisor by_inner;
    int64_t ignored;
    bool wide, ignores, mean;
};

static __device__ __forceinline__ float line_log_sum(const struct loss &k, const float *x,
                                                     unsigned lane)
{
    float largest = -INFINITY, sum = 0;
    for (unsigned i = lane; i < k.classes; i += WARP)
        largest = fmaxf(largest, x[(size_t)i * k.by_inner.d]);
    largest = warp_max(largest);
    for (unsigned i = lane; i < k.classes; i += WARP)
        sum += expf(x[(size_t)i * k.by_inner.d] - largest);
    return largest + logf(warp_sum(sum));
}

__global__ void __launch_bounds__(BLOCK) loss_lines(const __grid_constant__ struct loss k)
{
    KERNEL_BEGIN();
    unsigned lane = threadIdx.x % WARP, step = gridDim.x * (BLOCK / WARP), inner = k.by_inner.d;
    for (unsigned l = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP; l < k.lines; l += step) {
        unsigned outer = divide(l, k.by_inner);
        size_t at = (size_t)outer * k.classes * inner + (l - outer * inner);
        float shift = line_log_sum(k, k.x + at, lane);
        int64_t label = index_at(k.labels, k.wide, l);
        bool counts = !(k.ignores && label == k.ignored) && label >= 0 && label < k.classes;
        for (unsigned i = lane; k.log_prob && i < k.classes; i += WARP)
            k.log_prob[at + (size_t)i * inner] = k.x[at + (size_t)i * inner] - shift;
        if (lane)
            continue;
        float weight = !counts ? 0.0f : k.weights ? k.weights[label] : 1.0f;
        k.losses[l] = counts ? (shift - k.x[at + (size_t)label * inner]) * weight : 0.0f;
        if (k.totals)
            k.totals[l] = weight;
    }
}

__global__ void __launch_bounds__(BLOCK) loss_sum(const __grid_constant__ struct loss k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    float sum = 0, total = 0;
    for (unsigned l = threadIdx.x; l < k.lines; l += BLOCK) {
        sum += k.losses[l];
        total += k.totals[l];
    }
    sum = block_sum(sum, part);
    total = block_sum(total, part);
    if (threadIdx.x == 0)
        *k.y = k.mean ? sum / total : sum;
}

/* ---- hooks ---- */

struct kernel_state {
    struct loss k; /* pointers are left open */
    bool all;      /* losses are the result; else they are added up */
    unsigned given, wanted;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[SCORES].dtype != DTYPE_F32)
        return REFUSE(why, "only f32");
    if (!is_index(q->in[LABELS].dtype))
        return REFUSE(why, "labels are neither i32 nor i64");
    if (!output_wanted(q, 0) || shape_count(&q->in[SCORES].shape) == 0)
        return REFUSE(why, "no elements, or output 0 is not wanted");
    const char *reduction = cuda_host->node_string(q->node, "reduction", "mean");
    struct axis axis = axis_of(&q->in[SCORES].shape, 1);
    struct loss *k = &s->k;
    k->lines = (unsigned)(axis.outer * axis.inner);
    k->classes = (unsigned)axis.size;
    k->by_inner = divisor_of(axis.inner);
    k->ignored = cuda_host->node_int(q->node, "ignore_index", 0);
    k->ignores = cuda_host->node_attr(q->node, "ignore_index") != NULL;
    k->wide = q->in[LABELS].dtype == DTYPE_I64;
    k->mean = strcmp(reduction, "mean") == 0;
    s->all = strcmp(reduction, "none") == 0;
    s->given = inputs_given(q);
    s->wanted = outputs_wanted(q);
    s->grid = grid_for(q, (int64_t)k->lines * WARP);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->all ? 0 : 2 * padded_bytes(state->k.lines, sizeof(float));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct loss k = state->k;
    k.x = (const float *)args->in[SCORES];
    k.labels = args->in[LABELS];
    k.weights = (const float *)input_of(args, state->given, WEIGHTS);
    k.y = (float *)args->out[0];
    k.log_prob = (float *)output_of(args, state->wanted, 1);
    k.losses = state->all ? k.y : (float *)args->workspace;
    k.totals = state->all ? NULL : k.losses + padded_bytes(k.lines, sizeof(float)) / sizeof(float);
    LAUNCH(loss_lines, state->grid, cuda_size(BLOCK), 0, &k, args);
    if (!state->all)
        LAUNCH(loss_sum, cuda_size(1), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"SoftmaxCrossEntropyLoss", NULL};

CUDA_KERNEL(loss) = {CUDA_NAME(loss), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                     CUDA_HOOK(launch)};
