/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions of a vector of floats, written once for every instruction set. Range
 * reduction as in Cody and Waite (1980); the polynomials and quotients of polynomials are minimax
 * fits of our own (Remez; Lawson's weights for the quotients), coefficients rounded to float.
 *
 * Largest errors over 2 million points, the worst of all instruction sets, in units in the last
 * place of the true value; tests/unit/test_simd_math.c holds each function to them:
 *
 *   vf_exp 1.0         vf_exp_fast 2.3 (x <= 0 only; 0 below -87.7)       vf_expm1 1.6
 *   vf_log 0.9         vf_log1p 1.3 (x >= 0 only)                         vf_tanh 6
 *   vf_erf 7.5         vf_sigmoid, vf_silu 3.4 (0 below -88)
 *   vf_sin, vf_cos 1.6 for |x| < pi; beyond, 1e-7 absolute
 *   vf_gelu_erf, vf_gelu_tanh: 2.5e-7 of max(|x|, 1), for Phi(x) cancels where x < 0
 *
 * NaN gives NaN. Denormal arguments and results are exact to a denormal's grain, but for
 * vf_exp_fast and what builds on it (sigmoid, silu, gelu_tanh), whose tails flush to 0.
 */
#ifndef ENGINE_KERNELS_LIB_SIMD_MATH_H
#define ENGINE_KERNELS_LIB_SIMD_MATH_H

#include "engine/kernels/lib/simd.h"

/* c[0] + c[1] x + ... + c[count - 1] x^(count - 1) by Horner's rule; count is a constant. */
SIMD_INLINE vf vf_poly(vf x, const float *c, int count)
{
    vf sum = vf_set1(c[count - 1]);
    for (int k = count - 2; k >= 0; k--)
        sum = vf_fma(sum, x, vf_set1(c[k]));
    return sum;
}
#define VF_POLY(x, ...)                                                                            \
    vf_poly(x, (const float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))

/* NaN stays: vf_min and vf_max give their second argument where either is NaN. */
SIMD_INLINE vf vf_clamp(vf x, float low, float high)
{
    return vf_min(vf_set1(high), vf_max(vf_set1(low), x));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2. The high part has 15 bits, so n times it is exact. */
SIMD_INLINE vf vf_reduce_ln2(vf x, vf *n)
{
    *n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    vf r = vf_fnma(*n, vf_set1(0.693145752f), x);
    return vf_fnma(*n, vf_set1(1.42860677e-6f), r);
}

/* e^r - 1 for |r| <= ln 2 / 2, relative error of e^r 3e-9. */
SIMD_INLINE vf vf_expm1_near0(vf r)
{
    vf q = VF_POLY(r, 0.49999994f, 0.166665211f, 0.041668389f, 0.008368738f, 0.00138145755f);
    return vf_fma(vf_mul(r, r), q, r);
}

SIMD_INLINE vf vf_exp(vf x)
{
    vf n, r = vf_reduce_ln2(vf_clamp(x, -104.0f, 89.0f), &n);
    return vf_scale(vf_add(vf_set1(1.0f), vf_expm1_near0(r)), n);
}

/* For x <= 0 (softmax): one coefficient less, and 2^n by shifting alone. n = -127 gives 0. */
SIMD_INLINE vf vf_exp_fast(vf x)
{
    vf n, r = vf_reduce_ln2(vf_max(vf_set1(-88.0f), x), &n);
    vf q = VF_POLY(r, 0.499992311f, 0.166671157f, 0.0418902524f, 0.00831245631f);
    vf e = vf_add(vf_set1(1.0f), vf_fma(vf_mul(r, r), q, r));
    return vf_mul(e, vf_exp2i(vi_from_vf(n)));
}

/* e^x - 1, accurate near 0: 2^n (e^r - 1) + (2^n - 1), by halves since 2^128 is no float. */
SIMD_INLINE vf vf_expm1(vf x)
{
    vf n, r = vf_reduce_ln2(vf_clamp(x, -20.0f, 89.0f), &n);
    vf half = vf_set1(0.5f), scale = vf_scale(half, n);
    vf y = vf_fma(scale, vf_expm1_near0(r), vf_sub(scale, half));
    return vf_add(y, y);
}

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)), then log m = f - f^2/2 + f^3 P(f), f = m - 1. */
SIMD_INLINE vf vf_log(vf x)
{
    vm tiny = vf_lt(x, vf_set1(1.17549435e-38f));
    vf scaled = vf_select(tiny, vf_mul(x, vf_set1(8388608.0f)), x);
    vi from_root = vi_sub(vi_bits(scaled), vi_set1(0x3f3504f3)); /* bits of sqrt(1/2) */
    vf k = vf_from_vi(vi_shift_right(from_root, 23));
    k = vf_sub(k, vf_select(tiny, vf_set1(23.0f), vf_zero()));
    vf m = vf_bits(vi_add(vi_and(from_root, vi_set1(0x007fffff)), vi_set1(0x3f3504f3)));
    vf f = vf_sub(m, vf_set1(1.0f)), f2 = vf_mul(f, f);
    vf p = VF_POLY(f, 0.333333164f, -0.250008106f, 0.200022861f, -0.166245535f, 0.141811922f,
                   -0.131287545f, 0.128816485f, -0.0785961598f);
    vf y = vf_fma(k, vf_set1(-2.12194440e-4f), vf_mul(vf_mul(f, f2), p));
    y = vf_add(f, vf_fnma(vf_set1(0.5f), f2, y));
    y = vf_fma(k, vf_set1(0.693359375f), y);
    y = vf_select(vf_lt(x, vf_set1(INFINITY)), y, x); /* inf and NaN as they are */
    y = vf_select(vf_eq(x, vf_zero()), vf_set1(-INFINITY), y);
    return vf_select(vf_lt(x, vf_zero()), vf_set1(NAN), y);
}

/* log(1 + x), x >= 0: the rounding of 1 + x is put back to first order. */
SIMD_INLINE vf vf_log1p(vf x)
{
    vf u = vf_add(vf_set1(1.0f), x);
    vf lost = vf_div(vf_sub(x, vf_sub(u, vf_set1(1.0f))), u);
    vf y = vf_add(vf_log(u), lost);
    return vf_select(vf_lt(x, vf_set1(INFINITY)), y, x);
}

/* x P(x^2) / Q(x^2); tanh rounds to 1 from 9.01 on. */
SIMD_INLINE vf vf_tanh(vf x)
{
    vf y = vf_clamp(x, -9.02f, 9.02f), y2 = vf_mul(y, y);
    vf p = VF_POLY(y2, 1.0f, 0.133803889f, 0.0034948301f, 2.05965334e-05f, 1.33371119e-08f);
    vf q = VF_POLY(y2, 1.0f, 0.467137039f, 0.0258741025f, 0.000328439201f, 7.76941135e-07f);
    return vf_clamp(vf_div(vf_mul(y, p), q), -1.0f, 1.0f);
}

/* x P(x^2) / Q(x^2); erf rounds to 1 from 3.92 on. */
SIMD_INLINE vf vf_erf(vf x)
{
    vf y = vf_clamp(x, -3.925f, 3.925f), y2 = vf_mul(y, y);
    vf p = VF_POLY(y2, 1.12837911f, 0.190781772f, 0.0527899601f, 0.00377950561f, 0.000284803595f,
                   2.0419518e-06f);
    vf q = VF_POLY(y2, 1.0f, 0.502408683f, 0.11425662f, 0.0149972336f, 0.00116518256f,
                   3.80036145e-05f);
    return vf_clamp(vf_div(vf_mul(y, p), q), -1.0f, 1.0f);
}

/* e^-x, up to inf, which denominators turn into 0. */
SIMD_INLINE vf vf_exp_of_minus(vf x)
{
    return vf_exp_fast(vf_min(vf_set1(89.0f), vf_neg(x)));
}

/* Sine of x + quarters pi / 2. Three parts of pi / 2, the first two of 9 and 11 bits, hold r to
 * 1e-7 up to |x| = 8192; lanes beyond are left to libm. */
SIMD_INLINE vf vf_sin_shifted(vf x, int quarters)
{
    vf n = vf_round(vf_mul(x, vf_set1(0.636619772f)));
    vf r = vf_fnma(n, vf_set1(1.5703125f), x);
    r = vf_fnma(n, vf_set1(4.83751297e-4f), r);
    r = vf_fnma(n, vf_set1(7.54978942e-8f), r);
    vf r2 = vf_mul(r, r);
    vf s = VF_POLY(r2, -0.166666552f, 0.00833217613f, -0.000195170069f);
    vf c = VF_POLY(r2, 0.0416666456f, -0.00138873642f, 2.44381008e-05f);
    s = vf_fma(vf_mul(r, r2), s, r);
    c = vf_fma(vf_mul(r2, r2), c, vf_fnma(vf_set1(0.5f), r2, vf_set1(1.0f)));
    vi quadrant = vi_add(vi_from_vf(n), vi_set1(quarters));
    vm odd = vf_lt(vf_zero(), vf_from_vi(vi_and(quadrant, vi_set1(1))));
    vf sign = vf_sub(vf_set1(1.0f), vf_from_vi(vi_and(quadrant, vi_set1(2))));
    return vf_mul(sign, vf_select(odd, c, s));
}

SIMD_INLINE vf vf_libm_beyond(vf x, vf y, float limit, float (*function)(float))
{
    if (vm_bits(vf_le(vf_abs(x), vf_set1(limit))) == (1u << VL) - 1u)
        return y;
    float in[VL], out[VL];
    vf_store(in, x);
    vf_store(out, y);
    for (int k = 0; k < VL; k++)
        if (!(fabsf(in[k]) <= limit))
            out[k] = function(in[k]);
    return vf_load(out);
}

SIMD_INLINE vf vf_sin(vf x)
{
    return vf_libm_beyond(x, vf_sin_shifted(x, 0), 8192.0f, sinf);
}

SIMD_INLINE vf vf_cos(vf x)
{
    return vf_libm_beyond(x, vf_sin_shifted(x, 1), 8192.0f, cosf);
}

SIMD_INLINE vf vf_pow(vf a, vf b)
{
    float base[VL], exponent[VL];
    vf_store(base, a);
    vf_store(exponent, b);
    for (int k = 0; k < VL; k++)
        base[k] = powf(base[k], exponent[k]);
    return vf_load(base);
}

#define VECTOR_WORDS
#include "engine/graph/function_forms.h"

#endif
