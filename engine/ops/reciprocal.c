/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static double value(double x, const struct node *node)
{
    (void)node;
    return 1 / x;
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{0.1:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{0.1:9}"},
    {.name = "double", .inputs = "f64[3,5]{0.1:9}"},
    {.name = "half", .inputs = "f16[19]{0.1:9}"},
    {.name = "special", .inputs = "f32[6]=nan,inf,-inf,0,-0,-4"},
};

UNARY_OP_CASES(reciprocal, "Reciprocal", value, cases, .elementwise = 1, .transcendentals = 1);
