/* SPDX-License-Identifier: Apache-2.0
 *
 * A Conv node as its native kernels see it: three spatial dimensions, strides in memory, channels
 * dense in input and output. Weights may be constant, which are packed once, or come with each
 * launch, which packs them first: large ones into its workspace. A ConvTranspose of stride 1 is a
 * Conv: channels of the weights exchanged, taps in opposite order, and as much padding as the
 * kernel reaches less what was cut off. */
#ifndef ENGINE_KERNELS_LIB_CONV_SHAPE_H
#define ENGINE_KERNELS_LIB_CONV_SHAPE_H

#include "engine/kernels/lib/gemm.h"
#include "engine/ops/lib/window.h"

struct conv_shape {
    struct window window;                   /* rank 3 */
    int64_t images, channels, out_channels; /* channels: of the whole input */
    int64_t group_in, group_out;            /* channels per group */
    int64_t x_image, x_channel, x_at[SPATIAL_MAX];
    int64_t y_image, y_at[SPATIAL_MAX], y_pixel;
    int64_t w_out, w_in, w_tap; /* of the weights; taps one after the other, or backwards */
    int64_t w_first;            /* where the first tap is */
    int64_t pixels;             /* of one output image */
    bool bias, folded;          /* folded: all images are rows of one product */
    bool planes;                /* images are what the query calls planes of images */
    struct gemm_axes axes;
    struct gemm_post post; /* begins with the bias if there is one */
};

enum conv_wish {
    CONV_PLAIN = 0,
    CONV_PLANES = 1,   /* the input may have any channel stride */
    CONV_BY_IMAGE = 2, /* never fold images */
    CONV_BYTES = 4,    /* of ConvBytes instead of floats */
    CONV_BF16 = 8,     /* instead of f32 */
};

/* Fills the shape or says why the node is not for native kernels. */
#define conv_shape_from SIMD_FN(conv_shape_from)
enum status conv_shape_from(const struct kernel_query *q, unsigned wishes, struct conv_shape *shape,
                            struct error *why);

/* Weights of a convolution without groups as B[tap][channel][output channel], by all threads. A tap
 * of the plan is one of the weights, or a whole line of them. */
#define conv_pack SIMD_FN(conv_pack)
void conv_pack(const struct conv_shape *shape, const struct gemm_plan *plan, const float *weights,
               struct pool *pool, float *packed);

/* How many groups to take together: the least divisor that fills a vector. */
#define conv_merged_groups SIMD_FN(conv_merged_groups)
int64_t conv_merged_groups(const struct conv_shape *shape);

/* Number of products of `folded` images, and their rows. */
#define conv_batches SIMD_FN(conv_batches)
int64_t conv_batches(const struct conv_shape *shape);
#define conv_rows SIMD_FN(conv_rows)
int64_t conv_rows(const struct conv_shape *shape);

#endif
