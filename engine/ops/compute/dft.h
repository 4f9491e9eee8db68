/* SPDX-License-Identifier: Apache-2.0
 *
 * The discrete Fourier transform as its defining sum, with a table of the roots of unity: the
 * reference of DFT and STFT.
 */
#ifndef ENGINE_OPS_COMPUTE_DFT_H
#define ENGINE_OPS_COMPUTE_DFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct dft {
    int64_t length;
    double *roots; /* [length, 2]: exp(-2 pi i k / length), conjugated for the inverse */
};

enum status dft_init(struct dft *dft, int64_t length, bool inverse, struct error *err);
void dft_release(struct dft *dft);
/* Frequency k of the complex signal x [length, 2], not scaled. */
void dft_bin(const struct dft *dft, const double *x, int64_t k, double y[2]);
/* FLOPs of a fast transform by the usual convention, 5 n log2 n. */
double dft_flops(int64_t length);

#endif
