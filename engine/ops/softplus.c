/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return fmax(x, 0) + log1p(exp(-fabs(x))); /* log(1 + e^x) that does not overflow */
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-9:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "large", .inputs = "f32[33]{50:200}"},
    {.name = "special", .inputs = "f32[3]=inf,-inf,0"},
};

UNARY_OP_CASES(softplus, "Softplus", value, cases, .elementwise = 3, .transcendentals = 2);
