/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return floor(x);
}

UNARY_OP(floor, "Floor", value, .elementwise = 1);
