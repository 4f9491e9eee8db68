/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return erf(x);
}

UNARY_OP(erf, "Erf", value, .elementwise = 1, .transcendentals = 1);
