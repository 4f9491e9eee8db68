/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for the gradients of Conv and ConvTranspose, each of which is the other's: what the one
 * gathers through its weights, the other scatters. Windows are those of the convolution: from an
 * image to its `out`.
 */
#ifndef ENGINE_OPS_FAMILY_CONV_GRADIENT_H
#define ENGINE_OPS_FAMILY_CONV_GRADIENT_H

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/window.h"

/* The convolution of x. */
int make_conv(struct graph *g, int x, int weights, const struct window *w);
/* The image that a convolution's results y come from, each scattered over the elements that it saw;
 * of the image's size, also where no window saw its last elements. */
int make_conv_transpose(struct graph *g, int y, int weights, const struct window *w);
/* By the weights of the convolution of x, whose results have the gradient dy. */
int make_conv_weight_gradient(struct graph *g, int x, int dy, const struct window *w);
/* By a bias of each channel. */
int make_bias_gradient(struct graph *g, int dy, int bias);

#endif
