/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[4]=nan,0,inf,-inf"),
};

UNARY_OP(asinh, "Asinh", asinh, cases, .elementwise = 1, .transcendentals = 1);
