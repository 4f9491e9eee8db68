/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static int64_t integer(int64_t x, enum dtype dtype)
{
    return dtype_is_unsigned(dtype) || x >= 0 ? x : (int64_t)(0 - (uint64_t)x);
}

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "signed", .inputs = "i8[5]=-128,-1,0,1,127"},
    {.name = "signed_wide", .inputs = "i64[4]=-9223372036854775807,-5,0,7"},
    {.name = "unsigned", .inputs = "u64[3]=18446744073709551615,0,3"},
};

FUNCTION_OP_INTEGER(abs, "Abs", FN_ABS, cases, .integer = integer, .types = OP_NUMBER);
