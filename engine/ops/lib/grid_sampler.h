/* SPDX-License-Identifier: Apache-2.0
 *
 * How GridSample reads an image between its elements and beyond them: the node's attributes.
 */
#ifndef ENGINE_OPS_LIB_GRID_SAMPLER_H
#define ENGINE_OPS_LIB_GRID_SAMPLER_H

#include "engine/graph/op.h"

enum grid_sampling { SAMPLING_NEAREST, SAMPLING_LINEAR, SAMPLING_CUBIC };
enum grid_padding { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION };

struct grid_sampler {
    enum grid_sampling sampling;
    enum grid_padding padding;
    bool align;
    int64_t height, width;
};

/* x: the images, [N, C, H, W]. */
enum status grid_sampler_of(const struct node *node, const struct shape *x, struct grid_sampler *s,
                            struct error *err);

#endif
