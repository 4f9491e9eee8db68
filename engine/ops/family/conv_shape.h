/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape rule of Conv, ConvInteger and QLinearConv, whose weights are different inputs.
 */
#ifndef ENGINE_OPS_FAMILY_CONV_SHAPE_H
#define ENGINE_OPS_FAMILY_CONV_SHAPE_H

#include "engine/graph/op.h"
#include "engine/ops/lib/window.h"

/* x [N, C, spatial], weights [M, C / group, kernel]: the window and the shape of the result. */
enum status conv_shape_from(const struct node *node, const struct shape *x,
                            const struct shape *weights, struct window *window, struct shape *y,
                            struct error *err);

#endif
