/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop per step of an elementwise expression (engine/ops/lib/chain.h): y[i] = f(a[i], b[i]) for
 * i < n. y may be a or b. Which operands are a single value for all i is said by `scalars`;
 * functions of one operand never get a scalar one with n > 1.
 */
#ifndef ENGINE_KERNELS_LIB_TILE_FN_H
#define ENGINE_KERNELS_LIB_TILE_FN_H

#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/chain.h"

enum { TILE_A_SCALAR = 1, TILE_B_SCALAR = 2 };

struct tile_operands {
    const float *a, *b;
    unsigned scalars;
};

typedef void tile_fn(float *y, const struct tile_operands *x, int64_t n,
                     const struct chain_step *step);

extern tile_fn *const SIMD_FN(tile_fns)[FN_COUNT];

void SIMD_FN(tile_fill)(float *y, float x, int64_t n);
/* Past the caches where y is aligned; end a series with simd_fence. */
void SIMD_FN(tile_stream)(float *y, const float *x, int64_t n);
/* Rounds; past the caches as tile_stream does, if wanted. */
void SIMD_FN(tile_round)(uint16_t *y, const float *x, int64_t n, bool stream);

#endif
