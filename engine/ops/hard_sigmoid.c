/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const char *const attrs[] = {"alpha", "beta", NULL};

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "steep", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=0.5 beta=0.6"},
};

FUNCTION_OP_ATTRS(hard_sigmoid, "HardSigmoid", FN_HARD_SIGMOID, attrs, cases, 0.2, 0.5);
