/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[7]=nan,inf,-inf,0,-0,100,-100"),
};

FUNCTION_OP(sigmoid, "Sigmoid", FN_SIGMOID, cases);
