/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return tanh(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-9:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "small", .inputs = "f32[33]{-1e-4:1e-4}"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[7]=nan,inf,-inf,0,-0,100,-100"},
};

UNARY_OP_CASES(tanh, "Tanh", value, cases, .elementwise = 5, .transcendentals = 1);
