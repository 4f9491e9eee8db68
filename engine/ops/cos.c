/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[5]=nan,0,inf,-inf,1000"),
};

FUNCTION_OP(cos, "Cos", FN_COS, cases);
