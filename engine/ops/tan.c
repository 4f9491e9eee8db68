/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return tan(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-1.5:1.5}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-1.5:1.5}"},
    {.name = "double", .inputs = "f64[3,5]{-1.5:1.5}"},
    {.name = "half", .inputs = "f16[19]{-1.5:1.5}"},
    {.name = "special", .inputs = "f32[4]=nan,0,inf,-inf"},
};

UNARY_OP_CASES(tan, "Tan", value, cases, .elementwise = 1, .transcendentals = 1);
