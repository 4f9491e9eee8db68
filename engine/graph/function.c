/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/function.h"

#include <math.h>
#include <string.h>

static const double SQRT_1_2 = 0.70710678118654752440;
static const double SQRT_2_OVER_PI = 0.79788456080286535588;
static const double TWO_OVER_SQRT_PI = 1.12837916709551257390;
static const double ONE_OVER_SQRT_2_PI = 0.39894228040143267794;

#define ACTIVATION(code, name, flops, calls, ...) {name, 1, true, flops, calls},
#define UNARY(code, name, flops, calls, ...)      {name, 1, false, flops, calls},
#define BINARY(code, name, flops, calls, ...)     {name, 2, false, flops, calls},
static const struct function_info infos[FN_COUNT] = {FUNCTIONS(ACTIVATION, UNARY, BINARY)};

const struct function_info *function_info(enum function function)
{
    return &infos[function];
}

enum function function_find(const char *name)
{
    int k = 0;
    while (k < FN_COUNT && strcmp(infos[k].name, name) != 0)
        k++;
    return (enum function)k;
}

static const struct slope slopes[FN_COUNT] = {
    [FN_ABS] = {SLOPE_AT_INPUT, FN_ABS_SLOPE},
    [FN_CEIL] = {SLOPE_ZERO, FN_COPY},
    [FN_CELU] = {SLOPE_AT_RISING_RESULT, FN_CELU_SLOPE},
    [FN_CLIP] = {SLOPE_AT_RESULT, FN_CLIP_SLOPE},
    [FN_COPY] = {SLOPE_AT_INPUT, FN_COPY},
    [FN_COS] = {SLOPE_AT_INPUT, FN_COS_SLOPE},
    [FN_ELU] = {SLOPE_AT_RISING_RESULT, FN_ELU_SLOPE},
    [FN_ERF] = {SLOPE_AT_INPUT, FN_ERF_SLOPE},
    [FN_EXP] = {SLOPE_AT_RESULT, FN_MUL},
    [FN_FLOOR] = {SLOPE_ZERO, FN_COPY},
    [FN_GELU_ERF] = {SLOPE_AT_INPUT, FN_GELU_ERF_SLOPE},
    [FN_GELU_TANH] = {SLOPE_AT_INPUT, FN_GELU_TANH_SLOPE},
    [FN_HARD_SIGMOID] = {SLOPE_AT_RESULT, FN_HARD_SIGMOID_SLOPE},
    [FN_HARD_SWISH] = {SLOPE_AT_INPUT, FN_HARD_SWISH_SLOPE},
    [FN_LEAKY_RELU] = {SLOPE_AT_RISING_RESULT, FN_LEAKY_RELU_SLOPE},
    [FN_LOG] = {SLOPE_AT_INPUT, FN_DIV},
    [FN_MISH] = {SLOPE_AT_INPUT, FN_MISH_SLOPE},
    [FN_NEG] = {SLOPE_AT_INPUT, FN_NEG},
    [FN_RECIPROCAL] = {SLOPE_AT_RESULT, FN_RECIPROCAL_SLOPE},
    [FN_RELU] = {SLOPE_AT_RESULT, FN_RELU_SLOPE},
    [FN_ROUND] = {SLOPE_ZERO, FN_COPY},
    [FN_SCALE] = {SLOPE_AT_INPUT, FN_SCALE},
    [FN_SELU] = {SLOPE_AT_RISING_RESULT, FN_SELU_SLOPE},
    [FN_SHRINK] = {SLOPE_AT_INPUT, FN_SHRINK_SLOPE},
    [FN_SIGMOID] = {SLOPE_AT_RESULT, FN_SIGMOID_SLOPE},
    [FN_SIGN] = {SLOPE_ZERO, FN_COPY},
    [FN_SILU] = {SLOPE_AT_INPUT, FN_SILU_SLOPE},
    [FN_SIN] = {SLOPE_AT_INPUT, FN_SIN_SLOPE},
    [FN_SOFTPLUS] = {SLOPE_AT_INPUT, FN_SOFTPLUS_SLOPE},
    [FN_SOFTSIGN] = {SLOPE_AT_RESULT, FN_SOFTSIGN_SLOPE},
    [FN_SQRT] = {SLOPE_AT_RESULT, FN_SQRT_SLOPE},
    [FN_TANH] = {SLOPE_AT_RESULT, FN_TANH_SLOPE},
    [FN_THRESHOLD] = {SLOPE_AT_INPUT, FN_THRESHOLD_SLOPE},
};

struct slope function_slope(enum function function)
{
    return slopes[function];
}

/* NaN stays NaN. */
static double clamp(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* log(1 + e^x) that does not overflow. */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* Phi(x) + x phi(x) */
static double gelu_erf_slope(double x)
{
    return 0.5 * (1 + erf(x * SQRT_1_2)) + x * ONE_OVER_SQRT_2_PI * exp(-0.5 * x * x);
}

/* With s = (1 + tanh u) / 2: s + 2 x s (1 - s) u' */
static double gelu_tanh_slope(double x)
{
    double u = SQRT_2_OVER_PI * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-2 * u));
    return s + 2 * x * s * (1 - s) * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
}

static double mish_slope(double x)
{
    double t = tanh(softplus(x));
    return t + x * (1 - t * t) / (1 + exp(-x));
}

static double silu_slope(double x)
{
    double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

#define VALUE(code, name, flops, calls, value, vector)                                             \
    case FN_##code:                                                                                \
        return value;

double function_value(enum function function, double p, double q, double x, double y)
{
    switch (function) {
        FUNCTIONS(VALUE, VALUE, VALUE)
    case FN_COUNT:
        break;
    }
    return x;
}
