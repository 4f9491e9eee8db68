/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{-0.99:0.99}", "f32[5]=nan,0,1,-1,2"),
};

UNARY_OP(atanh, "Atanh", atanh, cases, .elementwise = 1, .transcendentals = 1);
