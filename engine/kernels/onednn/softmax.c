/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along one axis. */
#include "engine/kernels/onednn/lib/adapter.h"

/* Opsets before 13 join the dimensions from the axis on: rows of a plain tensor. */
static enum status flattened(const struct kernel_query *q, struct plan *plan, int *axis,
                             struct grouping *grouping, struct memory_layout *layout,
                             struct error *why)
{
    const struct desc *x = &q->in[0];
    if (!onednn_host->desc_is_plain(x) || !onednn_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "flattened axes of a tensor that is not plain");
    int64_t dims[2] = {1, 1}, strides[2] = {1, 1};
    for (int k = 0; k < x->shape.rank; k++)
        dims[k >= *axis] *= x->shape.dim[k];
    strides[0] = dims[1];
    *layout = layout_strided(plan, 2, dims, strides);
    *grouping = (struct grouping){.rank = 2, .first = {0, *axis, x->shape.rank}};
    *axis = 1;
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct memory_layout src, dst;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    TRY(layout_from_desc(plan, &q->in[0], &src, why));
    TRY(layout_from_desc(plan, &q->out[0], &dst, why));
    bool flat = onednn_host->node_int(q->node, "flatten", 0) != 0;
    int axis = (int)onednn_host->node_int(q->node, "axis", flat ? 1 : -1);
    axis += axis < 0 ? src.rank : 0;
    if (flat)
        TRY(flattened(q, plan, &axis, &grouping, &src, why));
    if (flat)
        dst = src;
    if (is_op(q, "LogSoftmax") && src.dims[axis] == 1)
        return REFUSE(why, "its log(1) is 1e-6, the whole result of an axis of length 1");
    dnnl_alg_kind_t kind = is_op(q, "Softmax") ? dnnl_softmax_accurate : dnnl_softmax_log;
    struct operation operation = {OPERATION_SOFTMAX, kind, .src = &src, .dst = &dst, .axis = axis};
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &src);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &dst);
    return STATUS_OK;
}

ONEDNN_KERNEL(softmax, build, 1, .ops = OPS("Softmax", "LogSoftmax"));
