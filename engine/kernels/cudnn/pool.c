/* SPDX-License-Identifier: Apache-2.0
 *
 * Maximum and average pooling, windowed or global. */
#include "engine/kernels/cudnn/lib/state.h"
#include "engine/ops/lib/window.h"

static void whole_image(const struct tensor *x, struct resample_op *op)
{
    for (int k = 0; k < op->spatial; k++) {
        op->window[k] = x->dim[k + 2];
        op->stride[k] = 1;
    }
}

/* A ceil_mode output may reach past the padding; cuDNN wants padding up to there. For the maximum
 * and for averages that leave padding out it makes no difference. */
static enum status windowed(const struct kernel_query *q, struct resample_op *op, struct error *why)
{
    struct window w;
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &w, why));
    int shift = w.rank == 1;
    if (shift)
        op->window[0] = op->stride[0] = 1;
    for (int k = 0; k < w.rank; k++) {
        int64_t past = (w.out[k] - 1) * w.stride[k] + w.kernel[k] - w.in[k] - w.pad_begin[k];
        if (w.dilation[k] != 1)
            return REFUSE(why, "dilated window");
        op->window[k + shift] = w.kernel[k];
        op->stride[k + shift] = w.stride[k];
        op->pad_begin[k + shift] = w.pad_begin[k];
        op->pad_end[k + shift] = past > w.pad_end[k] ? past : w.pad_end[k];
        if (past > w.pad_end[k] && op->mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING)
            return REFUSE(why, "average over padding that ceil_mode adds");
    }
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct tensor x, y;
    struct epilogue epilogue;
    if (wants_output(q, 1))
        return REFUSE(why, "indices are wanted as an output");
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(tensor_from(&q->out[0], &y, why));
    if (!tensors_agree(&x, &y))
        return REFUSE(why, "the image and the result lie in different orders");
    /* In f16 and bf16 the engine for pooling that is compiled at run time reads far outside of its
     * image, which loses the device where no memory lies there (cuDNN 9.19, engine 3, H200). */
    work->graph.no_compiled = x.type != CUDNN_DATA_FLOAT;
    struct resample_op op = {.spatial = x.rank - 2};
    bool max = is_op(q, "MaxPool") || is_op(q, "GlobalMaxPool");
    bool padding = cudnn_host->node_int(q->node, "count_include_pad", 0) != 0;
    op.mode = max       ? CUDNN_RESAMPLE_MAXPOOL
              : padding ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                        : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    if (is_op(q, "MaxPool") || is_op(q, "AveragePool"))
        TRY(windowed(q, &op, why));
    else
        whole_image(&x, &op);
    epilogue_from(q, NONE, &epilogue);
    op.x = work_in(work, 0, &x);
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_resample(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

CUDNN_KERNEL(pool, build,
             .ops = OPS("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"));
