/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of normalisations over rows, which several operators come down to: y = z scale + bias,
 * where z is x with each row, all axes from `axis` on, brought to mean 0 and deviation 1, or to a
 * mean square of 1. */
#ifndef ENGINE_OPS_FAMILY_NORM_GRADIENT_H
#define ENGINE_OPS_FAMILY_NORM_GRADIENT_H

#include "engine/ops/family/gradient.h"

struct row_norm {
    int x, scale, bias; /* scale and bias are broadcast to x; NONE: absent */
    int axis;
    double epsilon;
    bool centred; /* false: the mean stays (RMSNormalization) */
};

enum { NORM_X, NORM_SCALE, NORM_BIAS, NORM_INPUTS };

/* Sets the gradients of x, scale and bias, of those that are there. */
void norm_gradient(struct graph *g, const struct row_norm *norm, int dy, int gradient[NORM_INPUTS]);
/* The rule of an operator whose groups of channels are normalised in each image: rows of a tensor
 * of another shape. Inputs are x [N, C, ...], and scale and bias per channel or per group. */
void norm_gradient_of_groups(const struct gradient_call *c, int64_t groups);

#endif
