/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return log(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{0.01:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{0.01:9}"},
    {.name = "double", .inputs = "f64[3,5]{0.01:9}"},
    {.name = "half", .inputs = "f16[19]{0.01:9}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,0,1,-1"},
    {.name = "wide", .inputs = "f32[64]{1e-30:1e30}"},
};

UNARY_OP_CASES(log, "Log", value, cases, .elementwise = 1, .transcendentals = 1);
