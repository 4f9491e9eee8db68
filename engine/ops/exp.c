/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return exp(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-3:3}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "large", .inputs = "f32[41]{60:88}"},
    {.name = "small", .inputs = "f32[41]{-100:-60}"},
    {.name = "special", .inputs = "f32[7]=nan,inf,-inf,0,-0,100,-200"},
};

UNARY_OP_CASES(exp, "Exp", value, cases, .elementwise = 1, .transcendentals = 1);
