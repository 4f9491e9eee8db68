/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution in double on row-major N, C, spatial tensors: the reference of Conv, ConvTranspose
 * and their integer forms. A matrix product whose second operand is gathered on the fly.
 */
#ifndef ENGINE_OPS_COMPUTE_REF_CONV_H
#define ENGINE_OPS_COMPUTE_REF_CONV_H

#include "base/error.h"
#include "base/system/pool.h"
#include "engine/graph/op.h"
#include "engine/ops/lib/window.h"

struct ref_conv {
    struct window window; /* group included */
    int64_t images, in_channels, out_channels;
    const double *x;       /* [images, in_channels, in] */
    const double *weights; /* [out_channels, in_channels / group, kernel], or transposed:
                              [in_channels, out_channels / group, kernel] */
    double *y;             /* [images, out_channels, out]; the result is added to it */
    bool transposed;
};

enum status ref_conv_run(const struct ref_conv *conv, struct pool *pool, struct error *err);
/* Sets y to the bias of its channel; bias NULL: to zero. */
void ref_conv_bias(const struct ref_conv *conv, const double *bias);

/* Of an operator on integers with x as input 0: its sums of products, to be freed, of x and the
 * weights less their zero points, which are freed here. NULL in x or w: out of memory. */
enum status ref_conv_integers(const struct ref_call *call, int weights, double *x, double *w,
                              double **sums, struct error *err);

#endif
