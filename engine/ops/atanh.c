/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return atanh(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-0.99:0.99}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-0.99:0.99}"},
    {.name = "double", .inputs = "f64[3,5]{-0.99:0.99}"},
    {.name = "half", .inputs = "f16[19]{-0.99:0.99}"},
    {.name = "special", .inputs = "f32[5]=nan,0,1,-1,2"},
};

UNARY_OP_CASES(atanh, "Atanh", value, cases, .elementwise = 1, .transcendentals = 1);
