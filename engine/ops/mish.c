/* SPDX-License-Identifier: Apache-2.0
 *
 * x tanh(log(1 + e^x)) (opset 18). Cost: softplus 3, tanh 5, product 1. */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    double softplus = fmax(x, 0) + log1p(exp(-fabs(x)));
    return x * tanh(softplus);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-9:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-9:9}"},
    {.name = "double", .inputs = "f64[3,5]{-9:9}"},
    {.name = "half", .inputs = "f16[19]{-9:9}"},
    {.name = "special", .inputs = "f32[4]=nan,0,inf,100"},
};

UNARY_OP_CASES(mish, "Mish", value, cases, .elementwise = 9, .transcendentals = 3);
