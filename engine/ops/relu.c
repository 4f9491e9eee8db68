/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/op_unary.h"

static double value(double x, const struct node *node)
{
    (void)node;
    return x < 0 ? 0 : x; /* keeps NaN */
}

UNARY_OP(relu, "Relu", value, .elementwise = 1);
