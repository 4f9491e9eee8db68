/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static const struct op_case cases[] = {
    UNARY_CASES("{-1:1}", "f32[6]=nan,-1,1,0,1.5,-inf"),
};

UNARY_OP(asin, "Asin", asin, cases, .elementwise = 1, .transcendentals = 1);
