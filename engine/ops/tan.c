/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{-1.5:1.5}", "f32[4]=nan,0,inf,-inf"),
};

UNARY_OP(tan, "Tan", tan, cases, .elementwise = 1, .transcendentals = 1);
