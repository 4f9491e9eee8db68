/* SPDX-License-Identifier: Apache-2.0
 *
 * x max(0, min(1, x / 6 + 1 / 2)). */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return x * fmin(fmax(x / 6 + 0.5, 0), 1);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-5:5}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-5:5}"},
    {.name = "double", .inputs = "f64[3,5]{-5:5}"},
    {.name = "half", .inputs = "f16[19]{-5:5}"},
    {.name = "special", .inputs = "f32[5]=inf,0,-3,3,-100"},
};

UNARY_OP_CASES(hard_swish, "HardSwish", value, cases, .elementwise = 5);
