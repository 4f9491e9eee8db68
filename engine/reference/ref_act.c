/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "engine/reference/reference.h"

double act_value(enum act act, float fa, float fb, double x)
{
    double a = (double)fa, b = (double)fb;
    switch (act) {
    case ACT_NONE:
        return x;
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_CLIP:
        return x < a ? a : x > b ? b : x;
    case ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACT_TANH:
        return tanh(x);
    case ACT_GELU_ERF:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case ACT_SILU:
        return x / (1 + exp(-x));
    case ACT_HARD_SIGMOID:
        return fmin(fmax(a * x + b, 0), 1);
    case ACT_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case ACT_ELU:
        return x < 0 ? a * expm1(x) : x;
    case ACT_COUNT:
        break;
    }
    return x;
}
