/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along one axis. */
#include "engine/kernels/onednn/lib/adapter.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    dnnl_memory_desc_t src, dst;
    dnnl_softmax_v2_desc_t desc;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    TRY(md_from_desc(&q->in[0], &src, why));
    TRY(md_from_desc(&q->out[0], &dst, why));
    int64_t axis = onednn_host->node_int(q->node, "axis", -1);
    axis += axis < 0 ? src.ndims : 0;
    dnnl_alg_kind_t kind = is_op(q, "Softmax") ? dnnl_softmax_accurate : dnnl_softmax_log;
    DNNL_TRY(dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference, kind, &src, &dst,
                                               (int)axis),
             why);
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &desc, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &src);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &dst);
    return STATUS_OK;
}

ONEDNN_KERNEL(softmax, build, 1, .ops = OPS("Softmax", "LogSoftmax"));
