/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean and variance of the elements that a normalisation takes together, by two passes.
 */
#ifndef ENGINE_OPS_COMPUTE_MOMENTS_H
#define ENGINE_OPS_COMPUTE_MOMENTS_H

#include <stdint.h>

struct moments {
    double mean, variance; /* variance of the population: over n, not n - 1 */
};

struct moments moments_of(const double *x, int64_t count);

#endif
