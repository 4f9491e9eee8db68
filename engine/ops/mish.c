/* SPDX-License-Identifier: Apache-2.0
 *
 * x tanh(log(1 + e^x)) (opset 18). Cost: softplus 3, tanh 5, product 1. */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[4]=nan,0,inf,100"),
};

UNARY_REGISTER(mish, "Mish", cases, UNARY_FIELDS(.types = OP_FLOAT), .function = FN_MISH,
               .gradient = gradient_of_function, .since = 18);
