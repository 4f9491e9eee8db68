/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    return x < 0 ? node_float(node, "alpha", 1) * expm1(x) : x;
}

static const char *const attrs[] = {"alpha", NULL};

static const struct op_case cases[] = {
    {.name = "default", .inputs = "f32[67]{-3:3}"},
    {.name = "alpha", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=2.0"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
};

UNARY_OP_ATTRS(elu, "Elu", value, attrs, cases, .elementwise = 4, .transcendentals = 1);
