/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution with its bias and epilogue. */
#include "engine/kernels/cudnn/lib/conv.h"

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct window window;
    struct conv_op op = {.x = NULL};
    struct epilogue epilogue;
    struct tensor x, y;
    TRY(cudnn_host->window(q->node, &q->in[0].shape, &q->in[1].shape.dim[2], &window, why));
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(tensor_from(&q->out[0], &y, why));
    epilogue_from(q, q->node->op_inputs > 2 && query_in(q, 2) ? 2 : NONE, &epilogue);
    conv_window(&window, &op);
    op.x = work_in(work, 0, &x);
    TRY(conv_weights(q, work, &op, why));
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_conv(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

CUDNN_KERNEL(conv, build, .ops = OPS("Conv"), .packs = 1u << 1);
