/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const char *const attrs[] = {"alpha", NULL};

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "alpha", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "alpha=0.1"},
};

FUNCTION_OP_ATTRS(leaky_relu, "LeakyRelu", FN_LEAKY_RELU, attrs, cases, 0.01);
