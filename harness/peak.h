/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_PEAK_H
#define HARNESS_PEAK_H

#include "base/pool.h"
#include "engine/kernel.h"

/* FP32 FMA rate of all threads of the pool together, FLOP/s: best of several short bursts. */
double peak_fma_f32(struct pool *pool, enum isa isa);

#endif
