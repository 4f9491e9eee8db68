/* SPDX-License-Identifier: Apache-2.0
 *
 * max(0, x) + min(0, alpha (e^(x / alpha) - 1)). */
#include "engine/ops/lib/op_unary.h"

static const char *const attrs[] = {"alpha", NULL};

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "alpha", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=2.0"},
};

FUNCTION_OP_ATTRS(celu, "Celu", FN_CELU, attrs, cases, 1);
