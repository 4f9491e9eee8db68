/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution with its bias and epilogue. */
#include "engine/kernels/cudnn/lib/conv.h"
#include "engine/kernels/cudnn/lib/state.h"

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct conv_op op;
    struct epilogue epilogue;
    struct tensor y;
    TRY(conv_from(q, work, &op, &y, why));
    conv_epilogue(q, &epilogue);
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_conv(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

CUDNN_KERNEL(conv, build, .ops = OPS("Conv"), .packs = 1u << 1);
