/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loop of a depthwise convolution: a few neighbouring output pixels, all channels. Each
 * input vector is loaded once and feeds every output pixel that sees it (3x3, 4 x 2 pixels: 24
 * loads for 72 multiply-adds). Square kernels of 3, 5 and 7 with stride 1 and 2 have code of their
 * own.
 *
 * Groups of `depth` input and output channels, depth dividing the vector, are the same with one
 * round per input channel of the group: round j permutes each loaded vector so that all lanes of a
 * group hold its channel j. A permuted vector feeds up to six multiply-adds.
 *
 * What is bf16 in memory is widened as it is loaded and rounded as it is stored; weights and bias
 * are f32. */
#ifndef ENGINE_KERNELS_LIB_DEPTHWISE_H
#define ENGINE_KERNELS_LIB_DEPTHWISE_H

#include "engine/kernels/lib/gemm_steps.h"

enum { DEPTHWISE_PIXELS_MAX = 4, DEPTHWISE_ROWS_MAX = 2 };

struct depthwise {
    int kernel_y, kernel_x, step; /* step: input columns between neighbouring output pixels */
    int tap;                      /* input columns between neighbouring taps: the dilation */
    int columns;                  /* input columns of the whole run: pointers per kernel row */
    bool bf16;                    /* pixels, operands and results */
    const void *const *pixels;    /* [input row][columns]; kernel_y rows, or one more for 2 rows */
    int depth;                    /* channels of a group; 1: depthwise */
    const float *weights;         /* [depth][kernel_y][kernel_x][weights_row], whole vectors */
    int64_t weights_row;
    const float *bias;
    int64_t ahead; /* elements to what the next run reads first: prefetch it; 0: no */
    bool bounded;  /* the steps here, light ones or of bf16 all, are min(max(y, low), high) */
    float low, high;
    int64_t first, end; /* channels; first on a vector's boundary of weights */
};

/* Whether runs of this kernel may be two output rows high (then neighbouring rows share loads). */
#define depthwise_two_rows SIMD_FN(depthwise_two_rows)
bool depthwise_two_rows(const struct depthwise *d);
#define depthwise_set_bounds SIMD_FN(depthwise_set_bounds)
void depthwise_set_bounds(struct depthwise *d, const struct gemm_post *post);
/* rows by count (1 .. DEPTHWISE_PIXELS_MAX) output pixels; pixels[row] says where each row goes. */
#define depthwise_run SIMD_FN(depthwise_run)
void depthwise_run(const struct depthwise *d, int rows, int count,
                   const struct gemm_pixels *pixels);

#endif
