/* SPDX-License-Identifier: Apache-2.0
 *
 * What a convolution and its transpose share: the window and the weights. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_CONV_H
#define ENGINE_KERNELS_CUDNN_LIB_CONV_H

#include "engine/kernels/cudnn/lib/work.h"
#include "engine/ops/lib/window.h"

/* The window in cuDNN's terms: one dimension becomes two. */
void conv_window(const struct window *window, struct conv_op *op);
struct conv_images {
    struct tensor in, out; /* of the node */
    cudnn_desc image;      /* in */
};

/* The node's images, and its weights [K, C / group, taps], input 1, in op->w: packed in the order
 * of the result if they are known now, else as they come. */
enum status conv_tensors(const struct kernel_query *q, struct work *work, struct conv_op *op,
                         struct conv_images *images, struct error *why);

/* A Conv node but for where its result goes: op->y is not set, y is what it is like. */
enum status conv_from(const struct kernel_query *q, struct work *work, struct conv_op *op,
                      struct tensor *y, struct error *why);
void conv_epilogue(const struct kernel_query *q, struct epilogue *epilogue);

#endif
