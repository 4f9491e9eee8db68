/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementwise functions (engine/graph/function.h) as kernels compute them: what their rows do
 * not say in one line, and the activation of a fused epilogue. Written in words that
 * engine/kernels/lib/simd_math.h has for a vector of floats and engine/kernels/cuda/lib/math.h for
 * one float; both include this file when they have said them all (VECTOR_WORDS), and nobody else.
 */
#ifdef VECTOR_WORDS
#ifndef ENGINE_GRAPH_FUNCTION_FORMS_H
#define ENGINE_GRAPH_FUNCTION_FORMS_H

#include "engine/graph/function.h"

SIMD_INLINE vf vf_sigmoid(vf x)
{
    return vf_div(vf_set1(1.0f), vf_add(vf_set1(1.0f), vf_exp_of_minus(x)));
}

SIMD_INLINE vf vf_silu(vf x)
{
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp_of_minus(x)));
}

/* x Phi(x) */
SIMD_INLINE vf vf_gelu_erf(vf x)
{
    vf half = vf_mul(vf_set1(0.5f), x);
    return vf_fma(half, vf_erf(vf_mul(x, vf_set1(0.707106781f))), half);
}

/* x / 2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
SIMD_INLINE vf vf_gelu_tanh(vf x)
{
    vf cubic = vf_fma(vf_mul(x, x), vf_set1(0.0713548163f), vf_set1(1.59576912f));
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp_of_minus(vf_mul(x, cubic))));
}

SIMD_INLINE vf vf_hard_sigmoid(vf x, float a, float b)
{
    return vf_clamp(vf_fma(vf_set1(a), x, vf_set1(b)), 0.0f, 1.0f);
}

/* For x < 0 the other value; NaN stays. */
SIMD_INLINE vf vf_where_negative(vf x, vf y)
{
    return vf_select(vf_lt(x, vf_zero()), y, x);
}

SIMD_INLINE vf vf_softplus(vf x)
{
    vf tail = vf_log1p(vf_exp_of_minus(vf_abs(x)));
    return vf_add(vf_max(vf_zero(), x), tail);
}

/* tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2), e = e^x; 1 in float from x = 10 on. */
SIMD_INLINE vf vf_mish(vf x)
{
    vf e = vf_exp(vf_min(vf_set1(20.0f), x));
    vf s = vf_fma(e, e, vf_add(e, e));
    return vf_mul(x, vf_div(s, vf_add(s, vf_set1(2.0f))));
}

SIMD_INLINE vf vf_shrink(vf x, float bias, float limit)
{
    vf low = vf_select(vf_lt(x, vf_set1(-limit)), vf_add(x, vf_set1(bias)), vf_zero());
    return vf_select(vf_lt(vf_set1(limit), x), vf_sub(x, vf_set1(bias)), low);
}

/* NaN stays NaN, zeros stay as they are. */
SIMD_INLINE vf vf_sign(vf x)
{
    vf y = vf_select(vf_lt(vf_zero(), x), vf_set1(1.0f), x);
    return vf_select(vf_lt(x, vf_zero()), vf_set1(-1.0f), y);
}

/* x where low < y < high, else 0. */
SIMD_INLINE vf vf_where_between(vf x, vf y, float low, float high)
{
    vf above = vf_select(vf_lt(vf_set1(low), y), x, vf_zero());
    return vf_select(vf_lt(y, vf_set1(high)), above, vf_zero());
}

/* ---- slopes ---- */

/* Phi(x) + x phi(x) */
SIMD_INLINE vf vf_gelu_erf_slope(vf x)
{
    vf half = vf_set1(0.5f), bell = vf_exp_of_minus(vf_mul(half, vf_mul(x, x)));
    vf below = vf_fma(half, vf_erf(vf_mul(x, vf_set1(0.707106781f))), half);
    return vf_fma(vf_mul(x, vf_set1(0.398942280f)), bell, below);
}

/* s + x s (1 - s) 2u', s = 1 / (1 + e^-2u) */
SIMD_INLINE vf vf_gelu_tanh_slope(vf x)
{
    vf square = vf_mul(x, x), one = vf_set1(1.0f);
    vf cubic = vf_fma(square, vf_set1(0.0713548163f), vf_set1(1.59576912f));
    vf rise = vf_fma(square, vf_set1(0.214064449f), vf_set1(1.59576912f));
    vf s = vf_div(one, vf_add(one, vf_exp_of_minus(vf_mul(x, cubic))));
    return vf_fma(vf_mul(vf_mul(x, rise), s), vf_sub(one, s), s);
}

SIMD_INLINE vf vf_hard_swish_slope(vf x, vf y)
{
    vf inside = vf_mul(x, vf_fma(y, vf_set1(1.0f / 3.0f), vf_set1(0.5f)));
    vf below = vf_select(vf_lt(vf_set1(-3.0f), y), inside, vf_zero());
    vf slope = vf_select(vf_lt(y, vf_set1(3.0f)), below, x);
    return vf_select(vf_is_nan(y), y, slope);
}

SIMD_INLINE vf vf_silu_slope(vf x)
{
    vf one = vf_set1(1.0f), s = vf_div(one, vf_add(one, vf_exp_of_minus(x)));
    return vf_mul(s, vf_fma(x, vf_sub(one, s), one));
}

/* t + x (1 - t^2) / (1 + e^-x), t = tanh(softplus x) as in vf_mish */
SIMD_INLINE vf vf_mish_slope(vf x)
{
    vf one = vf_set1(1.0f), e = vf_exp(vf_min(vf_set1(20.0f), x));
    vf s = vf_fma(e, e, vf_add(e, e));
    vf t = vf_div(s, vf_add(s, vf_set1(2.0f)));
    vf rise = vf_div(vf_sub(one, vf_mul(t, t)), vf_add(one, vf_exp_of_minus(x)));
    return vf_fma(x, rise, t);
}

SIMD_INLINE vf vf_softsign_slope(vf x, vf y)
{
    vf rest = vf_sub(vf_set1(1.0f), vf_abs(y));
    return vf_mul(x, vf_mul(rest, rest));
}

#define FUNCTION_FORM(code, name, flops, calls, value, vector)                                     \
    case FN_##code:                                                                                \
        return vector;
#define FUNCTION_NONE(...)

/* The activation of a fused epilogue. act does not change within a loop: pass a constant (in a
 * function inlined once per activation) where the switch would cost, else it is one jump. */
SIMD_INLINE vf vf_act(vf x, enum function act, float p, float q)
{
    switch (act) {
        FUNCTIONS(FUNCTION_FORM, FUNCTION_NONE, FUNCTION_NONE)
    default:
        return x;
    }
}

#endif
#endif
