/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{0.01:9}", "f32[5]=nan,inf,0,1,-1"),
    {.name = "wide", .inputs = "f32[64]{1e-30:1e30}"},
};

FUNCTION_OP(log, "Log", FN_LOG, cases);
