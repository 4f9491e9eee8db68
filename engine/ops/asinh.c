/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return asinh(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-9:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-9:9}"},
    {.name = "double", .inputs = "f64[3,5]{-9:9}"},
    {.name = "half", .inputs = "f16[19]{-9:9}"},
    {.name = "special", .inputs = "f32[4]=nan,0,inf,-inf"},
};

UNARY_OP_CASES(asinh, "Asinh", value, cases, .elementwise = 1, .transcendentals = 1);
