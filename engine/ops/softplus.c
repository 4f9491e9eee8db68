/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[3]=inf,-inf,0"),
    {.name = "large", .inputs = "f32[33]{50:200}"},
};

FUNCTION_OP(softplus, "Softplus", FN_SOFTPLUS, cases);
