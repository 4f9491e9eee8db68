/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{0:9}", "f32[6]=nan,inf,0,-0,-1,1e-42"),
};

FUNCTION_OP(sqrt, "Sqrt", FN_SQRT, cases);
