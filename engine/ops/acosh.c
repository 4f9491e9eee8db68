/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{1:9}", "f32[4]=nan,1,inf,0.5"),
};

UNARY_OP(acosh, "Acosh", acosh, cases, .elementwise = 1, .transcendentals = 1);
