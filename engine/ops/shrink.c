/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const char *const attrs[] = {"bias", "lambd", NULL};

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[4]=inf,-inf,0.5,-0.5"),
    {.name = "soft", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "bias=1.5 lambd=1.5"},
    {.name = "hard", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "lambd=1.5"},
};

FUNCTION_OP_ATTRS(shrink, "Shrink", FN_SHRINK, attrs, cases, 0, 0.5);
