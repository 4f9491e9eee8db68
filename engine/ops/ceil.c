/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static double value(double x, const struct node *node)
{
    (void)node;
    return ceil(x);
}

UNARY_OP(ceil, "Ceil", value, .elementwise = 1);
