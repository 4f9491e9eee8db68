/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth loops: eight vectors a step, so that loop overhead hides behind loads and stores. */
#include "engine/kernels/lib/roof.h"

#include "engine/kernels/lib/simd.h"

enum { STEP = 8 };

/* Tells the compiler that memory changed: it may neither merge rounds nor call memcpy. */
SIMD_INLINE void touch(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

float SIMD_FN(roof_read)(const struct roof_arrays *x, int64_t rounds)
{
    const float *a = x->a;
    int64_t count = x->count;
    vf sum[STEP];
#pragma GCC unroll 8
    for (int k = 0; k < STEP; k++)
        sum[k] = vf_zero();
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < count; i += STEP * VL) {
#pragma GCC unroll 8
            for (int k = 0; k < STEP; k++)
                sum[k] = vf_add(sum[k], vf_load(a + i + k * VL));
            touch(a);
        }
    }
    float total = 0;
#pragma GCC unroll 8 /* else the sums would live in memory */
    for (int k = 0; k < STEP; k++)
        total += vf_sum(sum[k]);
    return total;
}

float SIMD_FN(roof_copy)(const struct roof_arrays *x, int64_t rounds)
{
    float *a = x->a;
    const float *b = x->b;
    int64_t count = x->count;
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < count; i += STEP * VL) {
#pragma GCC unroll 8
            for (int k = 0; k < STEP; k++)
                vf_store(a + i + k * VL, vf_load(b + i + k * VL));
            touch(a);
        }
    }
    return a[0];
}

float SIMD_FN(roof_copy_nt)(const struct roof_arrays *x, int64_t rounds)
{
    float *a = x->a;
    const float *b = x->b;
    int64_t count = x->count;
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < count; i += STEP * VL) {
#pragma GCC unroll 8
            for (int k = 0; k < STEP; k++)
                vf_stream(a + i + k * VL, vf_load(b + i + k * VL));
            touch(a);
        }
        simd_fence();
    }
    return a[0];
}

float SIMD_FN(roof_triad)(const struct roof_arrays *x, int64_t rounds)
{
    float *a = x->a;
    const float *b = x->b, *c = x->c;
    int64_t count = x->count;
    vf three = vf_set1(3);
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < count; i += STEP * VL) {
#pragma GCC unroll 8
            for (int k = 0; k < STEP; k++)
                vf_store(a + i + k * VL,
                         vf_fma(three, vf_load(c + i + k * VL), vf_load(b + i + k * VL)));
            touch(a);
        }
    }
    return a[0];
}

float SIMD_FN(roof_triad_nt)(const struct roof_arrays *x, int64_t rounds)
{
    float *a = x->a;
    const float *b = x->b, *c = x->c;
    int64_t count = x->count;
    vf three = vf_set1(3);
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < count; i += STEP * VL) {
#pragma GCC unroll 8
            for (int k = 0; k < STEP; k++)
                vf_stream(a + i + k * VL,
                          vf_fma(three, vf_load(c + i + k * VL), vf_load(b + i + k * VL)));
            touch(a);
        }
        simd_fence();
    }
    return a[0];
}
