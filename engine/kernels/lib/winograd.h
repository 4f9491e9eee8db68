/* SPDX-License-Identifier: Apache-2.0
 *
 * The transforms of Winograd's minimal filtering for 3x3 kernels (Lavin and Gray, arXiv
 * 1509.09308): F(4x4) turns 144 multiplications into 36, F(2x2) 36 into 16. A tile has `points`
 * = (out + 2)^2 values per channel; in memory each point is a matrix of its own,
 * [tile][channel], so that between the transforms there are `points` matrix products.
 *
 * F(4x4) uses the points 0, 3/4, -3/4, 3/2, -3/2: a third of the rounding error of the textbook's
 * 0, 1, -1, 2, -2 (3e-6 of the largest result against 8e-6 at 512 channels) for the same number of
 * multiply-adds in the input's transform. */
#ifndef ENGINE_KERNELS_LIB_WINOGRAD_H
#define ENGINE_KERNELS_LIB_WINOGRAD_H

#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm_post.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/ops/lib/window.h"

enum {
    WINOGRAD_SIDE_MAX = 6,
    WINOGRAD_POINTS_MAX = 36,
    WINOGRAD_TAPS = 9,
    WINOGRAD_CHANNELS_MIN = 8,
    WINOGRAD_LINE = 16, /* floats of a cache line */
};

/* UNSUPPORTED unless the window, of rank 3, is 3x3 in steps of 1 over enough channels. */
static inline enum status winograd_fits(const struct window *w, int64_t channels,
                                        int64_t out_channels, struct error *why)
{
    if (w->group > 1)
        return UNSUPPORTED(why, "groups");
    if (!window_is_flat(w) || w->kernel[1] != 3 || w->kernel[2] != 3)
        return UNSUPPORTED(why, "the kernel is not 3x3");
    if (w->stride[1] != 1 || w->stride[2] != 1 || w->dilation[1] != 1 || w->dilation[2] != 1)
        return UNSUPPORTED(why, "stride or dilation is not 1");
    if (smaller(channels, out_channels) < WINOGRAD_CHANNELS_MIN)
        return UNSUPPORTED(why, "fewer than %d channels", WINOGRAD_CHANNELS_MIN);
    return STATUS_OK;
}

/* Floats of a row of channels: whole vectors and one cache line more, so that rows do not fight
 * for cache sets. */
static inline int64_t winograd_row(int64_t channels)
{
    return round_up(channels, WINOGRAD_LINE) + WINOGRAD_LINE;
}

/* An image of pixels with all their channels, and what stands for pixels outside it. */
struct winograd_image {
    const float *first;
    int64_t rows, columns;
    int64_t row, pixel; /* elements between neighbours */
    const float *zeros; /* at least as many as channels */
    bool bf16;          /* the pixels are, behind pointers to floats; else f32 */
};

/* The square of side * side pixels from (y, x) on: their addresses. */
static inline void winograd_pixels(const struct winograd_image *image, int64_t y, int64_t x,
                                   int side, const float **pixels)
{
    for (int64_t i = y; i < y + side; i++)
        for (int64_t j = x; j < x + side; j++) {
            bool inside = i >= 0 && i < image->rows && j >= 0 && j < image->columns;
            int64_t at = i * image->row + j * image->pixel;
            *pixels++ = inside ? float_at(image->first, at, image->bf16) : image->zeros;
        }
}

/* One tile of input, channels [0, channels): v[point * step + channel]; writes whole vectors.
 * pixels: of the tile, row by row; out: 2 or 4. */
#define winograd_input SIMD_FN(winograd_input)
void winograd_input(int out, const float *const *pixels, int64_t channels, float *v, int64_t step);
/* The same of pixels of bf16. */
#define winograd_input_bf16 SIMD_FN(winograd_input_bf16)
void winograd_input_bf16(int out, const float *const *pixels, int64_t channels, float *v,
                         int64_t step);

/* One tile of output. */
struct winograd_tile {
    const float *m; /* m[point * step + channel] */
    int64_t step;
    int64_t channels;
    const float *bias; /* padded to vectors */
    void *y;           /* first pixel; `rows` by `columns` of them exist */
    int64_t y_row, y_pixel;
    int rows, columns;
    bool bf16;   /* y and operands are; else f32 */
    bool stream; /* past the caches: all pixels and channels on vector boundaries; f32 alone */
    const struct gemm_post *post;
    const float *const *operands; /* for the first pixel */
    const int64_t *operand_row;   /* per step: distance between rows of pixels */
};
#define winograd_output SIMD_FN(winograd_output)
void winograd_output(int out, const struct winograd_tile *tile);

/* taps[tap * VL + lane] of VL output channels and one input channel -> u[point * step + lane]. */
#define winograd_weights SIMD_FN(winograd_weights)
void winograd_weights(int out, const float *taps, float *u, int64_t step);

/* The same transforms turned around give the gradient by the weights: the sums over all tiles of
 * transformed gradients of the result times transformed inputs, transformed back into taps. */

/* One tile of the result's gradient, channels [0, channels): d[point * step + channel]; writes
 * whole vectors. pixels: out * out. */
#define winograd_gradient SIMD_FN(winograd_gradient)
void winograd_gradient(int out, const float *const *pixels, int64_t channels, float *d,
                       int64_t step);

/* Sums u[point * step + lane] of VL pairs of channels -> taps[tap * VL + lane]. */
#define winograd_taps SIMD_FN(winograd_taps)
void winograd_taps(int out, const float *u, int64_t step, float *taps);

#endif
