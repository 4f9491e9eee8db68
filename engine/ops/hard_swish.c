/* SPDX-License-Identifier: Apache-2.0
 *
 * x max(0, min(1, x / 6 + 1 / 2)). */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-5:5}", "f32[5]=inf,0,-3,3,-100"),
};

FUNCTION_OP(hard_swish, "HardSwish", FN_HARD_SWISH, cases);
