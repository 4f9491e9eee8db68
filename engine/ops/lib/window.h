/* SPDX-License-Identifier: Apache-2.0
 *
 * The sliding window of Conv, ConvTranspose and the pools, with auto_pad and ceil_mode resolved.
 */
#ifndef ENGINE_OPS_LIB_WINDOW_H
#define ENGINE_OPS_LIB_WINDOW_H

#include "engine/graph/graph.h"

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
 * kernel: spatial sizes of the weights. out = stride (in - 1) + output_padding + reach - pads,
 * reach = (kernel - 1) dilation + 1, gives the output_padding that makes pads explicit. */
enum status window_transposed_from_node(const struct node *node, const struct shape *x,
                                        const int64_t *kernel, struct window *window,
                                        struct error *err);

/* The same window with rank 3: leading dimensions of size 1. */
struct window window_to_3d(const struct window *window);
/* Whether one of rank 3 sees one plane alone: its first dimension is 1, without padding. */
bool window_is_flat(const struct window *window);
int64_t window_in_count(const struct window *window);  /* input positions of one channel */
int64_t window_out_count(const struct window *window); /* output positions */
int64_t window_taps(const struct window *window);      /* positions of the kernel */

/* For the references: table[tap * out_count + position] is the offset into one input channel
 * that the output position sees through the tap, -1 in the padding. transposed: the offsets of
 * ConvTranspose. free() it; NULL: out of memory. */
int64_t *window_offsets(const struct window *window, bool transposed);

#endif
