/* SPDX-License-Identifier: Apache-2.0
 *
 * max(0, x) + min(0, alpha (e^(x / alpha) - 1)). */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    double alpha = node_float(node, "alpha", 1);
    return x < 0 ? alpha * expm1(x / alpha) : x;
}

static const char *const attrs[] = {"alpha", NULL};

static const struct op_case cases[] = {
    {.name = "default", .inputs = "f32[67]{-3:3}"},
    {.name = "alpha", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=2.0"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
};

UNARY_OP_ATTRS(celu, "Celu", value, attrs, cases, .elementwise = 5, .transcendentals = 1);
