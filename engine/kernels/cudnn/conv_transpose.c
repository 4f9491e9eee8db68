/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposed convolution: the gradient of a convolution to its data. The node's input is the
 * gradient that comes in, its weights [C, M / group, taps] are those of the convolution from M to C
 * channels, and the pads, which cut off its output, are that convolution's padding. */
#include "engine/kernels/cudnn/lib/conv.h"
#include "engine/kernels/cudnn/lib/state.h"

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct window window;
    struct conv_op op = {.x = NULL};
    struct epilogue epilogue;
    struct conv_images images;
    TRY(window_transposed_from_node(q->node, &q->in[0].shape, &q->in[1].shape.dim[2], &window,
                                    why));
    for (int k = 0; k < window.rank; k++) /* 9.19 writes behind its result on an H200 */
        if (window.pad_begin[k] != window.pad_end[k])
            return REFUSE(why, "different padding at both ends");
    epilogue_from(q, q->node->op_inputs > 2 && query_in(q, 2) ? 2 : NONE, &epilogue);
    conv_window(&window, &op);
    TRY(conv_tensors(q, work, &op, &images, why));
    op.y = images.image;
    op.x = epilogue_start(&epilogue, work, &images.out);
    opgraph_conv_backward(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.x, &images.out, why);
}

CUDNN_KERNEL(conv_transpose, build, .ops = OPS("ConvTranspose"), .packs = 1u << 1);
