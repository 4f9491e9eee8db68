/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/compute/dft.h"

#include <math.h>
#include <stdlib.h>

enum status dft_init(struct dft *dft, int64_t length, bool inverse, struct error *err)
{
    static const double turn = 6.28318530717958647692;
    dft->length = length;
    dft->roots = malloc((size_t)length * 2 * sizeof(double) + 1);
    if (!dft->roots)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < length; k++) {
        double angle = turn * (double)k / (double)length;
        dft->roots[2 * k] = cos(angle);
        dft->roots[2 * k + 1] = inverse ? sin(angle) : -sin(angle);
    }
    return STATUS_OK;
}

void dft_release(struct dft *dft)
{
    free(dft->roots);
    dft->roots = NULL;
}

void dft_bin(const struct dft *dft, const double *x, int64_t k, double y[2])
{
    y[0] = y[1] = 0;
    for (int64_t n = 0, at = 0; n < dft->length; n++) {
        double re = dft->roots[2 * at], im = dft->roots[2 * at + 1];
        y[0] += x[2 * n] * re - x[2 * n + 1] * im;
        y[1] += x[2 * n] * im + x[2 * n + 1] * re;
        at = (at + k) % dft->length;
    }
}

double dft_flops(int64_t length)
{
    return length < 2 ? 0 : 5 * (double)length * log2((double)length);
}
