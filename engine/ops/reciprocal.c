/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{0.1:9}", "f32[6]=nan,inf,-inf,0,-0,-4"),
};

FUNCTION_OP(reciprocal, "Reciprocal", FN_RECIPROCAL, cases);
