/* SPDX-License-Identifier: Apache-2.0
 *
 * -1, 0 or 1; NaN stays NaN, as in numpy. Comparisons only: no FLOPs. */
#include "engine/ops/lib/op_unary.h"

static int64_t integer(int64_t x, enum dtype dtype)
{
    return dtype_is_unsigned(dtype) ? x != 0 : (x > 0) - (x < 0);
}

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[4]=inf,-inf,0,-0"),
    {.name = "signed", .inputs = "i32[4]=-2147483648,-1,0,5"},
    {.name = "unsigned", .inputs = "u64[3]=18446744073709551615,0,3"},
};

FUNCTION_OP_INTEGER(sign, "Sign", FN_SIGN, cases, .integer = integer, .types = OP_NUMBER);
