/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[5]=nan,0,inf,-inf,100"),
};

UNARY_OP(cosh, "Cosh", cosh, cases, .elementwise = 1, .transcendentals = 1);
