/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    double line = node_float(node, "alpha", 0.2) * x + node_float(node, "beta", 0.5);
    return isnan(line) ? line : fmin(fmax(line, 0), 1);
}

static const char *const attrs[] = {"alpha", "beta", NULL};

static const struct op_case cases[] = {
    {.name = "default", .inputs = "f32[67]{-3:3}"},
    {.name = "steep", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=0.5 beta=0.6"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
};

UNARY_OP_ATTRS(hard_sigmoid, "HardSigmoid", value, attrs, cases, .elementwise = 4);
