/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient rule of Resize and Upsample, whose inputs and attributes mean the same.
 */
#ifndef ENGINE_OPS_FAMILY_RESIZE_GRADIENT_H
#define ENGINE_OPS_FAMILY_RESIZE_GRADIENT_H

#include "engine/graph/op.h"

enum status resize_gradient(const struct gradient_call *c, struct error *err);

#endif
