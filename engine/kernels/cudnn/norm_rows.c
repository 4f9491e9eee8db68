/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization and RMSNormalization over trailing dimensions, seen as rows of one length. */
#include "engine/kernels/cudnn/lib/state.h"

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (query_in(q, k) && !cudnn_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "input %d is not plain", k);
    if (!cudnn_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "output is not plain");
    if (wants_output(q, 1) || wants_output(q, 2))
        return REFUSE(why, "mean and deviation are wanted as outputs");
    return STATUS_OK;
}

/* One element per element of a row, which has `rank` dimensions. */
static enum status vector(const struct kernel_query *q, int input, int64_t length, int64_t rank,
                          struct work *work, cudnn_desc *made, struct error *why)
{
    struct tensor t;
    const struct desc *desc = query_in(q, input);
    if (!desc)
        return STATUS_OK;
    if (shape_count(&desc->shape) != length || desc->shape.rank > rank)
        return REFUSE(why, "input %d is broadcast, or differs by row", input);
    TRY(tensor_from(desc, &t, why));
    t = tensor_rows(t.type, 1, length);
    *made = work_in(work, input, &t);
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    TRY(check(q, why));
    const struct shape *shape = &q->in[0].shape;
    int64_t axis = cudnn_host->node_int(q->node, "axis", -1), rows = 1, length = 1;
    axis += axis < 0 ? shape->rank : 0;
    for (int k = 0; k < shape->rank; k++)
        *(k < axis ? &rows : &length) *= shape->dim[k];
    struct tensor x;
    struct desc flat = q->in[0];
    flat.shape.rank = flat.shape.rank > 2 ? 2 : flat.shape.rank; /* only the type is taken */
    TRY(tensor_from(&flat, &x, why));
    x = tensor_rows(x.type, rows, length);
    bool rms = is_op(q, "RMSNormalization");
    struct norm_op op = {.mode = rms ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                         .phase = CUDNN_NORM_FWD_INFERENCE};
    op.x = work_in(work, 0, &x);
    TRY(vector(q, 1, length, shape->rank - axis, work, &op.scale, why));
    TRY(vector(q, 2, length, shape->rank - axis, work, &op.bias, why));
    op.epsilon = work_value(work, 4, (float)cudnn_host->node_float(q->node, "epsilon", 1e-5));
    op.y = work_out(work, 0, &x);
    opgraph_norm(&work->graph, &op);
    return STATUS_OK;
}

CUDNN_KERNEL(norm_rows, build, .ops = OPS("LayerNormalization", "RMSNormalization"));
