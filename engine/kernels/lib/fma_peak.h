/* SPDX-License-Identifier: Apache-2.0
 * The most FP32 multiply-adds that this instruction set does: the roof of the roofline. */
#ifndef ENGINE_KERNELS_LIB_FMA_PEAK_H
#define ENGINE_KERNELS_LIB_FMA_PEAK_H

#include <stdint.h>

/* Runs `rounds` rounds of independent FMAs in registers; returns the FLOPs done. *sink keeps the
 * compiler from dropping them. */
double fma_peak_scalar(int64_t rounds, float *sink);
double fma_peak_avx2(int64_t rounds, float *sink);
double fma_peak_avx512(int64_t rounds, float *sink);

#endif
