/* SPDX-License-Identifier: Apache-2.0
 *
 * What a convolution and its transpose share: the window and the weights. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_CONV_H
#define ENGINE_KERNELS_CUDNN_LIB_CONV_H

#include "engine/kernels/cudnn/lib/work.h"
#include "engine/ops/lib/window.h"

/* The window in cuDNN's terms: one dimension becomes two. */
void conv_window(const struct window *window, struct conv_op *op);
/* Weights [K, C / group, taps] of input 1: packed with the channels last if they are known now,
 * as every fast engine wants them, else as they come. */
enum status conv_weights(const struct kernel_query *q, struct work *work, struct conv_op *op,
                         struct error *why);

/* A Conv node but for where its result goes: op->y is not set, y is what it is like. */
enum status conv_from(const struct kernel_query *q, struct work *work, struct conv_op *op,
                      struct tensor *y, struct error *why);
void conv_epilogue(const struct kernel_query *q, struct epilogue *epilogue);

#endif
