/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along an axis that is not the last: one vector works on as many
 * neighbouring lines, and walks down the axis.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/axis.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x;
    void *y;
    float *exps; /* bf16: the exponentials of a block, for each thread */
    struct axis axis;
    int64_t blocks; /* vectors per inner dimension */
    int64_t block_size;
    bool log, bf16;
    int threads;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(query_plain_floats(q, &s->bf16, why));
    TRY(axis_of_softmax(q->node, &q->in[0].shape, &s->axis, why));
    if (s->axis.inner == 1)
        return UNSUPPORTED(why, "the axis is the last one");
    s->blocks = divide_up(s->axis.inner, VL);
    s->log = strcmp(q->node->op->name, "LogSoftmax") == 0;
    s->threads = q->threads;
    s->block_size = s->bf16 && !s->log ? round_up(s->axis.size * VL, 16) : 0;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * s->block_size) * sizeof(float);
}

/* y = e^(x - largest), lines y_step apart, unless y is NULL; returns the sums. */
SIMD_INLINE vf block_exp(const void *x, int64_t step, float *y, int64_t y_step, int64_t size,
                         vm lanes, vf largest, bool bf16)
{
    vf sum = vf_zero();
    for (int64_t k = 0; k < size; k++) {
        vf e = vf_exp_fast(vf_sub(vf_read_m(x, k * step, lanes, bf16), largest));
        sum = vf_add(sum, e);
        if (y)
            vf_store_m(y + k * y_step, lanes, e);
    }
    return sum;
}

/* Lanes outside the mask compute on zeros and are not stored. */
SIMD_INLINE void block_softmax(const struct kernel_state *job, int64_t tile, int thread, bool bf16)
{
    int64_t size = job->axis.size, step = job->axis.inner, column = tile % job->blocks * VL;
    int64_t start = tile / job->blocks * size * step + column;
    const void *x = float_at(job->x, start, bf16);
    void *y = out_at(job->y, start, bf16);
    float *exps = job->log ? NULL : bf16 ? job->exps + thread * job->block_size : y;
    int64_t exps_step = bf16 ? VL : step;
    vm lanes = vm_first(step - column);
    vf largest = vf_set1(-INFINITY);
    for (int64_t k = 0; k < size; k++)
        largest = vf_max(largest, vf_read_m(x, k * step, lanes, bf16));
    vf sum = block_exp(x, step, exps, exps_step, size, lanes, largest, bf16);
    vf factor = vf_div(vf_set1(1.0f), sum), shift = vf_add(largest, vf_log(sum));
    for (int64_t k = 0; k < size; k++) {
        vf value = job->log ? vf_sub(vf_read_m(x, k * step, lanes, bf16), shift)
                            : vf_mul(vf_load_m(exps + k * exps_step, lanes), factor);
        vf_write_m(y, k * step, lanes, value, bf16);
    }
}

static void run_block(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    if (job->bf16)
        block_softmax(job, tile, thread, true);
    else
        block_softmax(job, tile, thread, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    job.exps = args->workspace;
    pool_run(args->pool, job.axis.outer * job.blocks, run_block, &job);
}

REGISTER_KERNEL(softmax_columns) = {
    NATIVE(softmax_columns),
    .ops = OPS("Softmax", "LogSoftmax"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
