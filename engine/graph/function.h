/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementwise functions: one row says everything about one of them. Operators name their row
 * (struct op, .function); the reference, expressions (engine/ops/lib/chain.h), fused epilogues,
 * costs and the kernels of all devices are generated from it.
 *
 *   code     FN_ and this names it. Numbers stand in graphs and tuning caches: add rows at the end
 *   name     in plans and signatures
 *   flops    per element by the stated convention (docs/method.md)
 *   calls    those of exp, log, division ... among them
 *   double   the definition, which judges all kernels: of x with the parameters p and q, or x and y
 *   vector   the form of kernels, in words that CPUs have for a vector of floats and GPUs for one
 *            float (engine/graph/function_forms.h)
 *
 * ACTIVATION rows may be fused into the kernel before them (struct post). In them NaN stays NaN.
 *
 * A function's slope is a row, too, which gives x times the slope at y; y is the function's input
 * or its result, as function_slope says. Where it can be the result it is: then what the function
 * was applied to need not be kept, and an activation that is fused stays so.
 */
#ifndef ENGINE_GRAPH_FUNCTION_H
#define ENGINE_GRAPH_FUNCTION_H

#include <stdbool.h>

/* clang-format off */
#define FUNCTIONS(ACTIVATION, UNARY, BINARY)                                                       \
    UNARY(COPY, "copy", 0, 0, x, x)                                                                \
    UNARY(ABS, "abs", 1, 0, fabs(x), vf_abs(x))                                                    \
    UNARY(CEIL, "ceil", 1, 0, ceil(x), vf_ceil(x))                                                 \
    UNARY(CELU, "celu", 5, 1, x < 0 ? p * expm1(x / p) : x,                                        \
          vf_where_negative(x, vf_mul(vf_set1(p), vf_expm1(vf_div(x, vf_set1(p))))))               \
    ACTIVATION(CLIP, "clip", 2, 0, clamp(x, p, q), vf_clamp(x, p, q))                              \
    UNARY(COS, "cos", 1, 1, cos(x), vf_cos(x))                                                     \
    UNARY(CUBE, "cube", 1, 1, x * x * x, vf_mul(vf_mul(x, x), x))                                  \
    ACTIVATION(ELU, "elu", 4, 1, x < 0 ? p * expm1(x) : x,                                         \
               vf_where_negative(x, vf_mul(vf_set1(p), vf_expm1(x))))                              \
    UNARY(ERF, "erf", 1, 1, erf(x), vf_erf(x))                                                     \
    UNARY(EXP, "exp", 1, 1, exp(x), vf_exp(x))                                                     \
    UNARY(FLOOR, "floor", 1, 0, floor(x), vf_floor(x))                                             \
    ACTIVATION(GELU_ERF, "gelu_erf", 5, 1, 0.5 * x * (1 + erf(x * SQRT_1_2)), vf_gelu_erf(x))      \
    ACTIVATION(GELU_TANH, "gelu_tanh", 12, 1,                                                      \
               0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))), vf_gelu_tanh(x)) \
    ACTIVATION(HARD_SIGMOID, "hard_sigmoid", 4, 0, clamp(p * x + q, 0, 1),                         \
               vf_hard_sigmoid(x, p, q))                                                           \
    ACTIVATION(HARD_SWISH, "hard_swish", 5, 0, x * clamp(x / 6 + 0.5, 0, 1),                       \
               vf_mul(x, vf_hard_sigmoid(x, 1.0f / 6.0f, 0.5f)))                                   \
    ACTIVATION(LEAKY_RELU, "leaky_relu", 2, 0, x < 0 ? p * x : x,                                  \
               vf_where_negative(x, vf_mul(vf_set1(p), x)))                                        \
    UNARY(LOG, "log", 1, 1, log(x), vf_log(x))                                                     \
    UNARY(MISH, "mish", 9, 3, x * tanh(softplus(x)), vf_mish(x))                                   \
    UNARY(NEG, "neg", 1, 0, -x, vf_neg(x))                                                         \
    UNARY(RECIPROCAL, "reciprocal", 1, 1, 1 / x, vf_div(vf_set1(1.0f), x))                         \
    ACTIVATION(RELU, "relu", 1, 0, x < 0 ? 0 : x, vf_max(vf_zero(), x))                            \
    UNARY(ROUND, "round", 1, 0, nearbyint(x), vf_round(x))                                         \
    UNARY(SCALE, "scale", 1, 0, p * x, vf_mul(vf_set1(p), x))                                      \
    UNARY(SELU, "selu", 5, 1, q * (x < 0 ? p * expm1(x) : x),                                      \
          vf_mul(vf_set1(q), vf_where_negative(x, vf_mul(vf_set1(p), vf_expm1(x)))))               \
    UNARY(SHRINK, "shrink", 2, 0, x < -q ? x + p : x > q ? x - p : 0, vf_shrink(x, p, q))          \
    ACTIVATION(SIGMOID, "sigmoid", 4, 2, 1 / (1 + exp(-x)), vf_sigmoid(x))                         \
    UNARY(SIGN, "sign", 0, 0, isnan(x) ? x : (x > 0) - (x < 0), vf_sign(x))                        \
    ACTIVATION(SILU, "silu", 5, 2, x / (1 + exp(-x)), vf_silu(x))                                  \
    UNARY(SIN, "sin", 1, 1, sin(x), vf_sin(x))                                                     \
    UNARY(SOFTPLUS, "softplus", 3, 2, softplus(x), vf_softplus(x))                                 \
    UNARY(SOFTSIGN, "softsign", 3, 1, x / (1 + fabs(x)),                                           \
          vf_div(x, vf_add(vf_set1(1.0f), vf_abs(x))))                                             \
    UNARY(SQRT, "sqrt", 1, 1, sqrt(x), vf_sqrt(x))                                                 \
    UNARY(SQUARE, "square", 1, 1, x * x, vf_mul(x, x))                                             \
    ACTIVATION(TANH, "tanh", 5, 1, tanh(x), vf_tanh(x))                                            \
    UNARY(THRESHOLD, "threshold", 1, 0, x > p ? x : 0,                                             \
          vf_select(vf_lt(vf_set1(p), x), x, vf_zero()))                                           \
    BINARY(ADD, "add", 1, 0, x + y, vf_add(x, y))                                                  \
    BINARY(DIV, "div", 1, 1, x / y, vf_div(x, y))                                                  \
    BINARY(MAX, "max", 1, 0, isnan(x) || x > y ? x : y, vf_select(vf_is_nan(x), x, vf_max(x, y)))  \
    BINARY(MIN, "min", 1, 0, isnan(x) || x < y ? x : y, vf_select(vf_is_nan(x), x, vf_min(x, y)))  \
    BINARY(MUL, "mul", 1, 0, x * y, vf_mul(x, y))                                                  \
    BINARY(POW, "pow", 1, 1, pow(x, y), vf_pow(x, y))                                              \
    BINARY(PRELU, "prelu", 2, 0, x < 0 ? x * y : x, vf_where_negative(x, vf_mul(x, y)))            \
    BINARY(SUB, "sub", 1, 0, x - y, vf_sub(x, y))                                                  \
    UNARY(AFFINE, "affine", 2, 0, p * x + q, vf_fma(vf_set1(p), x, vf_set1(q)))                    \
    UNARY(SCALED_TANH, "scaled_tanh", 7, 1, p * tanh(q * x),                                       \
          vf_mul(vf_set1(p), vf_tanh(vf_mul(vf_set1(q), x))))                                      \
    BINARY(ABS_SLOPE, "abs_slope", 1, 0, x * (isnan(y) ? y : (y > 0) - (y < 0)),                   \
           vf_mul(x, vf_sign(y)))                                                                  \
    BINARY(CELU_SLOPE, "celu_slope", 3, 1, y < 0 ? x * (1 + y / p) : x,                            \
           vf_select(vf_lt(y, vf_zero()), vf_fma(x, vf_div(y, vf_set1(p)), x), x))                 \
    BINARY(CLIP_SLOPE, "clip_slope", 2, 0, y > p && y < q ? x : 0,                                 \
           vf_where_between(x, y, p, q))                                                           \
    BINARY(COS_SLOPE, "cos_slope", 2, 1, -x * sin(y), vf_neg(vf_mul(x, vf_sin(y))))                \
    BINARY(ELU_SLOPE, "elu_slope", 2, 0, y < 0 ? x * (y + p) : x,                                  \
           vf_select(vf_lt(y, vf_zero()), vf_mul(x, vf_add(y, vf_set1(p))), x))                    \
    BINARY(ERF_SLOPE, "erf_slope", 4, 1, x * TWO_OVER_SQRT_PI * exp(-y * y),                       \
           vf_mul(vf_mul(x, vf_set1(1.12837917f)), vf_exp_of_minus(vf_mul(y, y))))                 \
    BINARY(GELU_ERF_SLOPE, "gelu_erf_slope", 9, 2, x * gelu_erf_slope(y),                          \
           vf_mul(x, vf_gelu_erf_slope(y)))                                                        \
    BINARY(GELU_TANH_SLOPE, "gelu_tanh_slope", 14, 2, x * gelu_tanh_slope(y),                      \
           vf_mul(x, vf_gelu_tanh_slope(y)))                                                       \
    BINARY(HARD_SIGMOID_SLOPE, "hard_sigmoid_slope", 3, 0, y > 0 && y < 1 ? p * x : 0,             \
           vf_where_between(vf_mul(vf_set1(p), x), y, 0.0f, 1.0f))                                 \
    BINARY(HARD_SWISH_SLOPE, "hard_swish_slope", 4, 0,                                             \
           y <= -3 ? 0 : y >= 3 ? x : x * (y / 3 + 0.5), vf_hard_swish_slope(x, y))                \
    BINARY(LEAKY_RELU_SLOPE, "leaky_relu_slope", 2, 0, y < 0 ? p * x : x,                          \
           vf_select(vf_lt(y, vf_zero()), vf_mul(vf_set1(p), x), x))                               \
    BINARY(MISH_SLOPE, "mish_slope", 12, 4, x * mish_slope(y), vf_mul(x, vf_mish_slope(y)))        \
    BINARY(RECIPROCAL_SLOPE, "reciprocal_slope", 2, 0, -x * y * y,                                 \
           vf_neg(vf_mul(x, vf_mul(y, y))))                                                        \
    BINARY(RELU_SLOPE, "relu_slope", 1, 0, y > 0 ? x : 0,                                          \
           vf_select(vf_lt(vf_zero(), y), x, vf_zero()))                                           \
    BINARY(SELU_SLOPE, "selu_slope", 3, 0, y < 0 ? x * (y + p * q) : x * q,                        \
           vf_mul(x, vf_select(vf_lt(y, vf_zero()), vf_add(y, vf_set1(p * q)), vf_set1(q))))       \
    BINARY(SHRINK_SLOPE, "shrink_slope", 2, 0, fabs(y) > q ? x : 0,                                \
           vf_select(vf_lt(vf_set1(q), vf_abs(y)), x, vf_zero()))                                  \
    BINARY(SIGMOID_SLOPE, "sigmoid_slope", 3, 0, x * y * (1 - y),                                  \
           vf_mul(x, vf_mul(y, vf_sub(vf_set1(1.0f), y))))                                         \
    BINARY(SILU_SLOPE, "silu_slope", 8, 2, x * silu_slope(y), vf_mul(x, vf_silu_slope(y)))         \
    BINARY(SIN_SLOPE, "sin_slope", 2, 1, x * cos(y), vf_mul(x, vf_cos(y)))                         \
    BINARY(SOFTPLUS_SLOPE, "softplus_slope", 4, 2, x / (1 + exp(-y)),                              \
           vf_div(x, vf_add(vf_set1(1.0f), vf_exp_of_minus(y))))                                   \
    BINARY(SOFTSIGN_SLOPE, "softsign_slope", 4, 0, x * (1 - fabs(y)) * (1 - fabs(y)),              \
           vf_softsign_slope(x, y))                                                                \
    BINARY(SQRT_SLOPE, "sqrt_slope", 2, 1, 0.5 * x / y, vf_div(vf_mul(vf_set1(0.5f), x), y))       \
    BINARY(TANH_SLOPE, "tanh_slope", 3, 0, x * (1 - y * y),                                        \
           vf_mul(x, vf_sub(vf_set1(1.0f), vf_mul(y, y))))                                         \
    BINARY(THRESHOLD_SLOPE, "threshold_slope", 1, 0, y > p ? x : 0,                                \
           vf_select(vf_lt(vf_set1(p), y), x, vf_zero()))
/* clang-format on */

#define FUNCTION_CODE(code, ...) FN_##code,
enum function { FUNCTIONS(FUNCTION_CODE, FUNCTION_CODE, FUNCTION_CODE) FN_COUNT };
#undef FUNCTION_CODE

struct function_info {
    const char *name;
    int operands; /* 1, or 2: y as well */
    bool activation;
    double flops, calls;
};

const struct function_info *function_info(enum function function);
/* FN_COUNT: none has this name. */
enum function function_find(const char *name);
double function_value(enum function function, double p, double q, double x, double y);

enum slope_at {
    SLOPE_UNKNOWN = 0,
    SLOPE_ZERO,            /* wherever there is one */
    SLOPE_AT_INPUT,        /* y is what the function was applied to */
    SLOPE_AT_RESULT,       /* y is what came of it */
    SLOPE_AT_RISING_RESULT /* the same; holds where the result has the sign of the input */
};

/* The gradient by a function's input: `function`, with the function's own parameters, of the
 * gradient by its result and y. One of a single operand needs no y. */
struct slope {
    enum slope_at at;
    enum function function;
};

struct slope function_slope(enum function function);

#endif
