/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static double value(double x, const struct node *node)
{
    double bias = node_float(node, "bias", 0), limit = node_float(node, "lambd", 0.5);
    return x < -limit ? x + bias : x > limit ? x - bias : 0;
}

static const char *const attrs[] = {"bias", "lambd", NULL};

static const struct op_case cases[] = {
    {.name = "default", .inputs = "f32[67]{-3:3}"},
    {.name = "soft", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "bias=1.5 lambd=1.5"},
    {.name = "hard", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "lambd=1.5"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[4]=inf,-inf,0.5,-0.5"},
};

UNARY_OP_ATTRS(shrink, "Shrink", value, attrs, cases, .elementwise = 2);
