/* SPDX-License-Identifier: Apache-2.0
 *
 * A square of VL x VL floats in registers (16 x 16 with AVX-512, 8 x 8 with AVX2), transposed by
 * interleaving pairs of rows of ever larger groups; sum_rows adds what meets on the way instead and
 * gives the sum of each row (r is overwritten). */
#ifndef ENGINE_KERNELS_LIB_SIMD_SQUARE_H
#define ENGINE_KERNELS_LIB_SIMD_SQUARE_H

#include "engine/kernels/lib/simd.h"

#if defined(__AVX512F__)

SIMD_INLINE void transpose_square(vf r[VL])
{
    vf t[VL];
    for (int k = 0; k < VL; k += 4) { /* 4 x 4 within each quarter of the rows */
        vf a = _mm512_unpacklo_ps(r[k], r[k + 1]), b = _mm512_unpackhi_ps(r[k], r[k + 1]);
        vf c = _mm512_unpacklo_ps(r[k + 2], r[k + 3]), d = _mm512_unpackhi_ps(r[k + 2], r[k + 3]);
        t[k] = _mm512_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int k = 0; k < 4; k++) { /* quarters of rows k, k + 4, k + 8, k + 12 */
        vf a = _mm512_shuffle_f32x4(t[k], t[k + 4], 0x88);
        vf b = _mm512_shuffle_f32x4(t[k], t[k + 4], 0xdd);
        vf c = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0x88);
        vf d = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0xdd);
        r[k] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[k + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[k + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[k + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

SIMD_INLINE vf sum_rows(vf r[VL])
{
    for (int k = 0; k < VL; k += 2) /* pairs of each two rows side by side */
        r[k / 2] =
            _mm512_add_ps(_mm512_unpacklo_ps(r[k], r[k + 1]), _mm512_unpackhi_ps(r[k], r[k + 1]));
    for (int k = 0; k < VL / 2; k += 2) { /* quarters of each four */
        vf a = r[k], b = r[k + 1];
        r[k / 2] = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    }
    for (int n = 4; n > 1; n /= 2) /* halves of each eight, then wholes */
        for (int k = 0; k < n; k += 2) {
            vf a = r[k], b = r[k + 1];
            r[k / 2] =
                _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
        }
    return r[0];
}

#elif defined(__AVX2__)

SIMD_INLINE void transpose_square(vf r[VL])
{
    vf t[VL];
    for (int k = 0; k < VL; k += 4) {
        vf a = _mm256_unpacklo_ps(r[k], r[k + 1]), b = _mm256_unpackhi_ps(r[k], r[k + 1]);
        vf c = _mm256_unpacklo_ps(r[k + 2], r[k + 3]), d = _mm256_unpackhi_ps(r[k + 2], r[k + 3]);
        t[k] = _mm256_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (int k = 0; k < 4; k++) {
        r[k] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x20);
        r[k + 4] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x31);
    }
}

SIMD_INLINE vf sum_rows(vf r[VL])
{
    for (int k = 0; k < VL; k += 2)
        r[k / 2] =
            _mm256_add_ps(_mm256_unpacklo_ps(r[k], r[k + 1]), _mm256_unpackhi_ps(r[k], r[k + 1]));
    for (int k = 0; k < VL / 2; k += 2) {
        vf a = r[k], b = r[k + 1];
        r[k / 2] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    }
    return _mm256_add_ps(_mm256_permute2f128_ps(r[0], r[1], 0x20),
                         _mm256_permute2f128_ps(r[0], r[1], 0x31));
}

#else

SIMD_INLINE void transpose_square(vf r[VL])
{
    (void)r;
}

SIMD_INLINE vf sum_rows(vf r[VL])
{
    return r[0];
}

#endif

/* Rows of a matrix and where they go as columns. */
struct turn {
    const float *from;
    int64_t from_row; /* floats between rows */
    float *to;
    int64_t to_row;
};

/* The columns of `rows` rows of `depth` floats times `scale`. Whole vectors are written, with zeros
 * for the rows that lack to VL. */
SIMD_INLINE void turn_square(const struct turn *t, int64_t rows, int64_t depth, vf scale)
{
    vf r[VL];
    vm lanes = vm_first(depth);
    for (int i = 0; i < VL; i++) {
        r[i] = vf_zero();
        if (i < rows)
            r[i] = depth >= VL ? vf_load(t->from + i * t->from_row)
                               : vf_load_m(t->from + i * t->from_row, lanes);
        r[i] = vf_mul(scale, r[i]);
    }
    transpose_square(r);
    for (int i = 0; i < VL && i < depth; i++)
        vf_store(t->to + i * t->to_row, r[i]);
}

/* `count` neighbouring columns of `depth` rows that are from_row floats apart, both VL at most:
 * column i goes to to[i]. Whole vectors are written, with zeros for the rows that lack to VL. */
SIMD_INLINE void turn_columns(const float *from, int64_t from_row, float *const *to, int64_t count,
                              int64_t depth)
{
    vf r[VL];
    vm lanes = vm_first(count);
    for (int i = 0; i < VL; i++) {
        r[i] = vf_zero();
        if (i < depth)
            r[i] =
                count == VL ? vf_load(from + i * from_row) : vf_load_m(from + i * from_row, lanes);
    }
    transpose_square(r);
    for (int i = 0; i < VL && i < count; i++)
        vf_store(to[i], r[i]);
}

/* turn_square for VL rows at most and any depth. */
SIMD_INLINE void turn_rows(struct turn t, int64_t rows, int64_t depth, vf scale)
{
    int64_t at = 0;
    for (; rows >= VL && at + VL <= depth; at += VL, t.from += VL, t.to += VL * t.to_row)
        turn_square(&t, VL, VL, scale);
    for (; at < depth; at += VL, t.from += VL, t.to += VL * t.to_row)
        turn_square(&t, rows, depth - at, scale);
}

#endif
