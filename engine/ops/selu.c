/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    double alpha = node_float(node, "alpha", 1.67326319217681884765625);
    double gamma = node_float(node, "gamma", 1.05070102214813232421875);
    return gamma * (x <= 0 ? alpha * expm1(x) : x);
}

static const char *const attrs[] = {"alpha", "gamma", NULL};

static const struct op_case cases[] = {
    {.name = "default", .inputs = "f32[67]{-3:3}"},
    {.name = "attributes", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=2.0 gamma=3.0"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
};

UNARY_OP_ATTRS(selu, "Selu", value, attrs, cases, .elementwise = 5, .transcendentals = 1);
