/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization over trailing dimensions, seen as rows of one length. */
#include "engine/kernels/onednn/lib/adapter.h"

/* [rows, length] of a plain tensor whose dimensions from `axis` on are normalised. */
static struct memory_layout rows_of(struct plan *plan, const struct shape *shape, int axis)
{
    int64_t dims[2] = {1, 1};
    for (int k = 0; k < shape->rank; k++)
        dims[k >= axis] *= shape->dim[k];
    int64_t strides[2] = {dims[1], 1};
    return layout_strided(plan, 2, dims, strides);
}

static enum status check(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct memory_layout checked;
    for (int k = 0; k < q->node->op_inputs; k++) {
        if (!query_in(q, k))
            continue;
        TRY(layout_from_desc(plan, &q->in[k], &checked, why));
        if (!onednn_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "input %d is not plain", k);
    }
    if (!onednn_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "output is not plain");
    for (int k = 1; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE)
            return REFUSE(why, "mean and deviation are wanted as outputs");
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct plan_step *step;
    TRY(check(q, plan, why));
    const struct shape *shape = &q->in[0].shape;
    int64_t axis = onednn_host->node_int(q->node, "axis", -1);
    axis += axis < 0 ? shape->rank : 0;
    struct memory_layout rows = rows_of(plan, shape, (int)axis);
    for (int k = 1; k < q->node->op_inputs; k++) {
        const struct desc *in = query_in(q, k);
        if (in && (shape_count(&in->shape) != rows.dims[1] || in->shape.rank > shape->rank - axis))
            return REFUSE(why, "input %d is broadcast within a row, or differs by row", k);
    }
    struct grouping grouping = {.rank = 2, .first = {0, (int)axis, shape->rank}};
    bool shifted = query_in(q, 2) && q->node->op_inputs > 2;
    struct operation operation = {OPERATION_LAYER_NORM, .src = &rows, .dst = &rows,
                                  .alpha = onednn_host->node_float(q->node, "epsilon", 1e-5),
                                  .flags =
                                      dnnl_use_scale | (shifted ? (unsigned)dnnl_use_shift : 0u)};
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    int64_t one = 1;
    struct memory_layout vector = layout_strided(plan, 1, &rows.dims[1], &one);
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &rows);
    step_io(step, DNNL_ARG_SCALE, SOURCE_IN, 1, &vector);
    if (shifted)
        step_io(step, DNNL_ARG_SHIFT, SOURCE_IN, 2, &vector);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &rows);
    return STATUS_OK;
}

ONEDNN_KERNEL(layer_norm, build, 1, .ops = OPS("LayerNormalization"));
