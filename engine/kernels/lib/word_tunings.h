/* SPDX-License-Identifier: Apache-2.0
 *
 * Which micro-kernels are worth timing for products of bf16 and of bytes. */
#ifndef ENGINE_KERNELS_LIB_WORD_TUNINGS_H
#define ENGINE_KERNELS_LIB_WORD_TUNINGS_H

#include "engine/kernels/lib/gemm.h"

struct word_tuning {
    enum gemm_math math;
    int vectors, rows;
};

/* That of a variant, of elements of one or two bytes, and how many there are; NULL where that is
 * not more than `variant`. */
#define word_tunings SIMD_FN(word_tunings)
int word_tunings(int element, double macs, int variant, const struct word_tuning **found);

#endif
