/* SPDX-License-Identifier: Apache-2.0
 *
 * Halves go to the even neighbour, as the default rounding mode does. */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return nearbyint(x);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-9:9}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-9:9}"},
    {.name = "double", .inputs = "f64[3,5]{-9:9}"},
    {.name = "half", .inputs = "f16[19]{-9:9}"},
    {.name = "ties", .inputs = "f32[8]=-2.5,-1.5,-0.5,0.5,1.5,2.5,3.5,8388609"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
};

UNARY_OP_CASES(round, "Round", value, cases, .elementwise = 1);
