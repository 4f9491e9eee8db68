/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along an axis that is not the last: one vector works on as many
 * neighbouring lines, and walks down the axis.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/axis.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y;
    struct axis axis;
    int64_t blocks; /* vectors per inner dimension */
    bool log;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(query_plain_f32(q, why));
    TRY(axis_of_softmax(q->node, &q->in[0].shape, &s->axis, why));
    if (s->axis.inner == 1)
        return UNSUPPORTED(why, "the axis is the last one");
    s->blocks = divide_up(s->axis.inner, VL);
    s->log = strcmp(q->node->op->name, "LogSoftmax") == 0;
    return STATUS_OK;
}

/* Lanes outside the mask compute on zeros and are not stored. */
static void run_block(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t size = job->axis.size, step = job->axis.inner, column = tile % job->blocks * VL;
    int64_t start = tile / job->blocks * size * step + column;
    const float *x = job->x + start;
    float *y = job->y + start;
    vm lanes = vm_first(step - column);
    vf largest = vf_set1(-INFINITY), sum = vf_zero();
    for (int64_t k = 0; k < size; k++)
        largest = vf_max(largest, vf_load_m(x + k * step, lanes));
    for (int64_t k = 0; k < size; k++) {
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + k * step, lanes), largest));
        sum = vf_add(sum, e);
        if (!job->log)
            vf_store_m(y + k * step, lanes, e);
    }
    vf factor = vf_div(vf_set1(1.0f), sum), shift = vf_add(largest, vf_log(sum));
    for (int64_t k = 0; k < size; k++) {
        vf value = job->log ? vf_sub(vf_load_m(x + k * step, lanes), shift)
                            : vf_mul(vf_load_m(y + k * step, lanes), factor);
        vf_store_m(y + k * step, lanes, value);
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    pool_run(args->pool, job.axis.outer * job.blocks, run_block, &job);
}

REGISTER_KERNEL(softmax_columns) = {
    NATIVE(softmax_columns),
    .ops = OPS("Softmax", "LogSoftmax"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
