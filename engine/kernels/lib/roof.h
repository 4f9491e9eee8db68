/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops behind the roofs of the roofline, compiled once per instruction set like the kernels
 * that are compared with them. harness/roofs/ceilings.c times them.
 */
#ifndef ENGINE_KERNELS_LIB_ROOF_H
#define ENGINE_KERNELS_LIB_ROOF_H

#include <stdint.h>

/* Runs `rounds` rounds of independent operations in registers; returns the operations done (a
 * multiply-add is two). *sink keeps the compiler from dropping them. */
typedef double roof_compute(int64_t rounds, float *sink);

roof_compute roof_fma_f32_scalar, roof_fma_f32_avx2, roof_fma_f32_avx512;
roof_compute roof_fma_f64_scalar, roof_fma_f64_avx2, roof_fma_f64_avx512;
roof_compute roof_dot_i8_avx2, roof_dot_i8_avx512; /* three instructions: maddubs, madd, add */
roof_compute roof_dot_i8_vnni_avx2;                /* needs AVX-VNNI */
roof_compute roof_dot_i8_vnni_avx512;              /* needs AVX512-VNNI */
roof_compute roof_dot_bf16_avx512;                 /* needs AVX512-BF16 */

/* Arrays of one thread, aligned to 64 bytes. */
struct roof_arrays {
    float *a, *b, *c;
    int64_t count; /* of each; a multiple of ROOF_COUNT_STEP */
};

enum { ROOF_COUNT_STEP = 128 };

/* Walks over the arrays `rounds` times. Returns a sum, so that nothing is dropped. */
typedef float roof_stream(const struct roof_arrays *x, int64_t rounds);

roof_stream roof_read_scalar, roof_read_avx2, roof_read_avx512;          /* sum of a */
roof_stream roof_copy_scalar, roof_copy_avx2, roof_copy_avx512;          /* a = b */
roof_stream roof_copy_nt_scalar, roof_copy_nt_avx2, roof_copy_nt_avx512; /* past the caches */
roof_stream roof_triad_scalar, roof_triad_avx2, roof_triad_avx512;       /* a = b + 3 c */
roof_stream roof_triad_nt_scalar, roof_triad_nt_avx2, roof_triad_nt_avx512;

#endif
