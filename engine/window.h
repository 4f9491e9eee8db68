/* SPDX-License-Identifier: Apache-2.0
 *
 * The sliding window of Conv, ConvTranspose and the pools, with auto_pad and ceil_mode resolved.
 */
#ifndef ENGINE_WINDOW_H
#define ENGINE_WINDOW_H

#include "engine/graph.h"

enum { SPATIAL_MAX = 3 };

struct window {
    int rank; /* spatial dimensions, 1 to 3 */
    int64_t kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
    int64_t pad_begin[SPATIAL_MAX], pad_end[SPATIAL_MAX];
    int64_t in[SPATIAL_MAX], out[SPATIAL_MAX];
    int64_t group;
};

/* From the node's attributes and the input's shape [N, C, spatial]. kernel: spatial sizes of the
 * weights, or NULL to take the kernel_shape attribute. Fails on sizes that give no output. */
enum status window_from_node(const struct node *node, const struct shape *x, const int64_t *kernel,
                             struct window *window, struct error *err);
/* The same for ConvTranspose: pads are cut off the result, output_shape decides them if given.
 * kernel: spatial sizes of the weights. */
enum status window_transposed_from_node(const struct node *node, const struct shape *x,
                                        const int64_t *kernel, struct window *window,
                                        struct error *err);

#endif
