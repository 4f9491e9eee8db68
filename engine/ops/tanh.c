/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[7]=nan,inf,-inf,0,-0,100,-100"),
    {.name = "small", .inputs = "f32[33]{-1e-4:1e-4}"},
};

FUNCTION_OP(tanh, "Tanh", FN_TANH, cases);
