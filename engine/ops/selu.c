/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const char *const attrs[] = {"alpha", "gamma", NULL};

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "attributes", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=2.0 gamma=3.0"},
    {.name = "falling", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "gamma=-3.0"},
};

FUNCTION_OP_ATTRS(selu, "Selu", FN_SELU, attrs, cases, 1.67326319217681884765625,
                  1.05070102214813232421875);
