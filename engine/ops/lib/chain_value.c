/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of engine/ops/lib/chain.h in double, as the operators' references define them. */
#include <math.h>

#include "engine/ops/lib/chain.h"

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

/* NaN stays NaN. */
static double clip(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double shrink(double x, double bias, double limit)
{
    if (x < -limit)
        return x + bias;
    return x > limit ? x - bias : 0;
}

/* The exponential units: x < 0 ? alpha (e^(x / width) - 1) : x */
static double exponential_unit(double x, double alpha, double width)
{
    return x < 0 ? alpha * expm1(x / width) : x;
}

static double rounding(enum chain_code code, double x)
{
    if (code == CHAIN_ROUND)
        return nearbyint(x);
    return code == CHAIN_FLOOR ? floor(x) : ceil(x);
}

static double binary_value(enum chain_code code, double a, double b)
{
    switch (code) {
    case CHAIN_ADD:
        return a + b;
    case CHAIN_DIV:
        return a / b;
    case CHAIN_MAX:
        return isnan(a) || a > b ? a : b;
    case CHAIN_MIN:
        return isnan(a) || a < b ? a : b;
    case CHAIN_MUL:
        return a * b;
    case CHAIN_POW:
        return pow(a, b);
    case CHAIN_PRELU:
        return a < 0 ? a * b : a;
    default:
        return a - b; /* CHAIN_SUB */
    }
}

static double line_value(const struct chain_step *step, double x)
{
    double p = (double)step->p, q = (double)step->q;
    switch (step->code) {
    case CHAIN_ABS:
        return fabs(x);
    case CHAIN_CLIP:
        return clip(x, p, q);
    case CHAIN_CUBE:
        return x * x * x;
    case CHAIN_HARD_SIGMOID:
        return clip(p * x + q, 0, 1);
    case CHAIN_HARD_SWISH:
        return x * clip(x / 6 + 0.5, 0, 1);
    case CHAIN_LEAKY_RELU:
        return x < 0 ? p * x : x;
    case CHAIN_NEG:
        return -x;
    case CHAIN_RECIPROCAL:
        return 1 / x;
    case CHAIN_RELU:
        return x < 0 ? 0 : x;
    case CHAIN_SCALE:
        return p * x;
    case CHAIN_SHRINK:
        return shrink(x, p, q);
    case CHAIN_SIGN:
        return isnan(x) ? x : (x > 0) - (x < 0);
    case CHAIN_SQUARE:
        return x * x;
    case CHAIN_THRESHOLD:
        return x > p ? x : 0;
    default:
        return x; /* CHAIN_COPY */
    }
}

double chain_value(const struct chain_step *step, double a, double b)
{
    double p = (double)step->p, q = (double)step->q;
    switch (step->code) {
    case CHAIN_CEIL:
    case CHAIN_FLOOR:
    case CHAIN_ROUND:
        return rounding(step->code, a);
    case CHAIN_CELU:
        return exponential_unit(a, p, p);
    case CHAIN_COS:
        return cos(a);
    case CHAIN_ELU:
        return exponential_unit(a, p, 1);
    case CHAIN_ERF:
        return erf(a);
    case CHAIN_EXP:
        return exp(a);
    case CHAIN_GELU_ERF:
        return 0.5 * a * (1 + erf(a * 0.70710678118654752440));
    case CHAIN_GELU_TANH:
        return gelu_tanh(a);
    case CHAIN_LOG:
        return log(a);
    case CHAIN_MISH:
        return a * tanh(softplus(a));
    case CHAIN_SELU:
        return q * exponential_unit(a, p, 1);
    case CHAIN_SIGMOID:
        return 1 / (1 + exp(-a));
    case CHAIN_SILU:
        return a / (1 + exp(-a));
    case CHAIN_SIN:
        return sin(a);
    case CHAIN_SOFTPLUS:
        return softplus(a);
    case CHAIN_SOFTSIGN:
        return a / (1 + fabs(a));
    case CHAIN_SQRT:
        return sqrt(a);
    case CHAIN_TANH:
        return tanh(a);
    default:
        return chain_info(step->code)->operands == 2 ? binary_value(step->code, a, b)
                                                     : line_value(step, a);
    }
}
