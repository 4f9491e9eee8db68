/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return asin(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-1:1}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-1:1}"},
    {.name = "double", .inputs = "f64[3,5]{-1:1}"},
    {.name = "half", .inputs = "f16[19]{-1:1}"},
    {.name = "special", .inputs = "f32[6]=nan,-1,1,0,1.5,-inf"},
};

UNARY_OP_CASES(asin, "Asin", value, cases, .elementwise = 1, .transcendentals = 1);
