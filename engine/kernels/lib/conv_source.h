/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution's images as rows of a matrix product: a pointer per output pixel and tap, padding
 * being a row of zeros. Elements of any size; the images are in memory that a conv_shape describes.
 */
#ifndef ENGINE_KERNELS_LIB_CONV_SOURCE_H
#define ENGINE_KERNELS_LIB_CONV_SOURCE_H

#include "engine/kernels/lib/conv_shape.h"

/* What gemm_call.source is. */
struct conv_source {
    const struct conv_shape *shape;
    int64_t bytes; /* of an element */
    const char *x;
    const void *zeros;           /* what is read outside of an image: all channels of a pixel */
    bool linear;                 /* row m is m pixels from the start */
    int64_t groups, group_bytes; /* batches of a product are images times these; from one to the
                                    next */
};

/* With a batch for each group. */
#define conv_source_of SIMD_FN(conv_source_of)
struct conv_source conv_source_of(const struct conv_shape *shape, size_t bytes, const void *x,
                                  const void *zeros);

/* A gemm_rows_fn. */
#define conv_source_rows SIMD_FN(conv_source_rows)
gemm_rows_fn conv_source_rows;

#endif
