/* SPDX-License-Identifier: Apache-2.0
 *
 * Halves go to the even neighbour, as the default rounding mode does. */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "ties", .inputs = "f32[8]=-2.5,-1.5,-0.5,0.5,1.5,2.5,3.5,8388609"},
};

FUNCTION_OP(round, "Round", FN_ROUND, cases);
