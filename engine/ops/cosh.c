/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return cosh(x);
}

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[5]=nan,0,inf,-inf,100"),
};

UNARY_OP(cosh, "Cosh", value, cases, .elementwise = 1, .transcendentals = 1);
