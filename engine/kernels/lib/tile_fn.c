/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/tile_fn.h"

#include <math.h>

#include "engine/kernels/lib/simd_math.h"

#define UNARY(name, expression)                                                                    \
    static void name(float *y, const struct tile_operands *t, int64_t n,                           \
                     const struct chain_step *step)                                                \
    {                                                                                              \
        const float *a = t->a, p = step->p, q = step->q;                                           \
        (void)p, (void)q;                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + VL <= n; i += VL) {                                                             \
            vf x = vf_load(a + i);                                                                 \
            vf_store(y + i, expression);                                                           \
        }                                                                                          \
        if (i < n) {                                                                               \
            vm rest = vm_first(n - i);                                                             \
            vf x = vf_load_m(a + i, rest);                                                         \
            vf_store_m(y + i, rest, expression);                                                   \
        }                                                                                          \
    }

/* In `expression` u and v are the operands. */
#define BINARY(name, expression)                                                                   \
    SIMD_INLINE void name##_loop(float *y, const float *a, const float *b, int64_t n,              \
                                 unsigned scalars)                                                 \
    {                                                                                              \
        vf all_u = scalars & TILE_A_SCALAR ? vf_set1(*a) : vf_zero();                              \
        vf all_v = scalars & TILE_B_SCALAR ? vf_set1(*b) : vf_zero();                              \
        int64_t i = 0;                                                                             \
        for (; i + VL <= n; i += VL) {                                                             \
            vf u = scalars & TILE_A_SCALAR ? all_u : vf_load(a + i);                               \
            vf v = scalars & TILE_B_SCALAR ? all_v : vf_load(b + i);                               \
            vf_store(y + i, expression);                                                           \
        }                                                                                          \
        if (i < n) {                                                                               \
            vm rest = vm_first(n - i);                                                             \
            vf u = scalars & TILE_A_SCALAR ? all_u : vf_load_m(a + i, rest);                       \
            vf v = scalars & TILE_B_SCALAR ? all_v : vf_load_m(b + i, rest);                       \
            vf_store_m(y + i, rest, expression);                                                   \
        }                                                                                          \
    }                                                                                              \
    static void name(float *y, const struct tile_operands *t, int64_t n,                           \
                     const struct chain_step *step)                                                \
    {                                                                                              \
        (void)step;                                                                                \
        if (t->scalars == 0)                                                                       \
            name##_loop(y, t->a, t->b, n, 0);                                                      \
        else if (t->scalars == TILE_A_SCALAR)                                                      \
            name##_loop(y, t->a, t->b, n, TILE_A_SCALAR);                                          \
        else if (t->scalars == TILE_B_SCALAR)                                                      \
            name##_loop(y, t->a, t->b, n, TILE_B_SCALAR);                                          \
        else                                                                                       \
            name##_loop(y, t->a, t->b, n, TILE_A_SCALAR | TILE_B_SCALAR);                          \
    }

SIMD_INLINE vf vf_softplus(vf x)
{
    vf tail = vf_log1p(vf_exp_fast(vf_neg(vf_abs(x))));
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

SIMD_INLINE vf vf_max_nan(vf a, vf b)
{
    return vf_select(vf_is_nan(a), a, vf_max(a, b));
}

SIMD_INLINE vf vf_min_nan(vf a, vf b)
{
    return vf_select(vf_is_nan(a), a, vf_min(a, b));
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

SIMD_INLINE vf vf_negative_part(vf x, vf scaled, vf factor)
{
    return vf_select(vf_lt(x, vf_zero()), vf_mul(factor, scaled), x);
}

UNARY(tile_abs, vf_abs(x))
UNARY(tile_ceil, vf_ceil(x))
UNARY(tile_celu, vf_negative_part(x, vf_expm1(vf_div(x, vf_set1(p))), vf_set1(p)))
UNARY(tile_clip, vf_clamp(x, p, q))
UNARY(tile_cos, vf_cos(x))
UNARY(tile_cube, vf_mul(vf_mul(x, x), x))
UNARY(tile_elu, vf_act(x, ACT_ELU, p, q))
UNARY(tile_erf, vf_erf(x))
UNARY(tile_exp, vf_exp(x))
UNARY(tile_floor, vf_floor(x))
UNARY(tile_gelu_erf, vf_gelu_erf(x))
UNARY(tile_gelu_tanh, vf_gelu_tanh(x))
UNARY(tile_hard_sigmoid, vf_hard_sigmoid(x, p, q))
UNARY(tile_hard_swish, vf_act(x, ACT_HARD_SWISH, p, q))
UNARY(tile_leaky_relu, vf_act(x, ACT_LEAKY_RELU, p, q))
UNARY(tile_log, vf_log(x))
UNARY(tile_mish, vf_mish(x))
UNARY(tile_neg, vf_neg(x))
UNARY(tile_reciprocal, vf_div(vf_set1(1.0f), x))
UNARY(tile_relu, vf_max(vf_zero(), x))
UNARY(tile_round, vf_round(x))
UNARY(tile_scale, vf_mul(vf_set1(p), x))
UNARY(tile_selu, vf_mul(vf_set1(q), vf_negative_part(x, vf_expm1(x), vf_set1(p))))
UNARY(tile_shrink, vf_shrink(x, p, q))
UNARY(tile_sigmoid, vf_sigmoid(x))
UNARY(tile_sign, vf_sign(x))
UNARY(tile_silu, vf_silu(x))
UNARY(tile_sin, vf_sin(x))
UNARY(tile_softplus, vf_softplus(x))
UNARY(tile_softsign, vf_div(x, vf_add(vf_set1(1.0f), vf_abs(x))))
UNARY(tile_sqrt, vf_sqrt(x))
UNARY(tile_square, vf_mul(x, x))
UNARY(tile_tanh, vf_tanh(x))
UNARY(tile_threshold, vf_select(vf_lt(vf_set1(p), x), x, vf_zero()))

/* The second operand is not read. */
BINARY(tile_copy, ((void)v, u))
BINARY(tile_add, vf_add(u, v))
BINARY(tile_div, vf_div(u, v))
BINARY(tile_max, vf_max_nan(u, v))
BINARY(tile_min, vf_min_nan(u, v))
BINARY(tile_mul, vf_mul(u, v))
BINARY(tile_pow, vf_pow(u, v))
BINARY(tile_prelu, vf_select(vf_lt(u, vf_zero()), vf_mul(u, v), u))
BINARY(tile_sub, vf_sub(u, v))

tile_fn *const SIMD_FN(tile_fns)[CHAIN_CODE_COUNT] = {
    [CHAIN_COPY] = tile_copy,
    [CHAIN_ABS] = tile_abs,
    [CHAIN_CEIL] = tile_ceil,
    [CHAIN_CELU] = tile_celu,
    [CHAIN_CLIP] = tile_clip,
    [CHAIN_COS] = tile_cos,
    [CHAIN_CUBE] = tile_cube,
    [CHAIN_ELU] = tile_elu,
    [CHAIN_ERF] = tile_erf,
    [CHAIN_EXP] = tile_exp,
    [CHAIN_FLOOR] = tile_floor,
    [CHAIN_GELU_ERF] = tile_gelu_erf,
    [CHAIN_GELU_TANH] = tile_gelu_tanh,
    [CHAIN_HARD_SIGMOID] = tile_hard_sigmoid,
    [CHAIN_HARD_SWISH] = tile_hard_swish,
    [CHAIN_LEAKY_RELU] = tile_leaky_relu,
    [CHAIN_LOG] = tile_log,
    [CHAIN_MISH] = tile_mish,
    [CHAIN_NEG] = tile_neg,
    [CHAIN_RECIPROCAL] = tile_reciprocal,
    [CHAIN_RELU] = tile_relu,
    [CHAIN_ROUND] = tile_round,
    [CHAIN_SCALE] = tile_scale,
    [CHAIN_SELU] = tile_selu,
    [CHAIN_SHRINK] = tile_shrink,
    [CHAIN_SIGMOID] = tile_sigmoid,
    [CHAIN_SIGN] = tile_sign,
    [CHAIN_SILU] = tile_silu,
    [CHAIN_SIN] = tile_sin,
    [CHAIN_SOFTPLUS] = tile_softplus,
    [CHAIN_SOFTSIGN] = tile_softsign,
    [CHAIN_SQRT] = tile_sqrt,
    [CHAIN_SQUARE] = tile_square,
    [CHAIN_TANH] = tile_tanh,
    [CHAIN_THRESHOLD] = tile_threshold,
    [CHAIN_ADD] = tile_add,
    [CHAIN_DIV] = tile_div,
    [CHAIN_MAX] = tile_max,
    [CHAIN_MIN] = tile_min,
    [CHAIN_MUL] = tile_mul,
    [CHAIN_POW] = tile_pow,
    [CHAIN_PRELU] = tile_prelu,
    [CHAIN_SUB] = tile_sub,
};

void SIMD_FN(tile_stream)(float *y, const float *x, int64_t n)
{
    const int64_t misaligned = (int64_t)((uintptr_t)y / sizeof(float) % VL);
    int64_t head = misaligned ? VL - misaligned : 0, i = head < n ? head : n;
    if (i > 0)
        vf_store_m(y, vm_first(i), vf_load_m(x, vm_first(i)));
    for (; i + VL <= n; i += VL)
        vf_stream(y + i, vf_load(x + i));
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_m(y + i, rest, vf_load_m(x + i, rest));
    }
}

void SIMD_FN(tile_gather)(float *y, const float *x, int64_t n, int64_t stride)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i * stride];
}
