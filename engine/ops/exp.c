/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[7]=nan,inf,-inf,0,-0,100,-200"),
    {.name = "large", .inputs = "f32[41]{60:88}"},
    {.name = "small", .inputs = "f32[41]{-100:-60}"},
};

FUNCTION_OP(exp, "Exp", FN_EXP, cases);
