/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static const struct op_case cases[] = {
    UNARY_CASES("{-9:9}", "f32[4]=nan,0,1e30,-1e30"),
};

FUNCTION_OP(softsign, "Softsign", FN_SOFTSIGN, cases);
