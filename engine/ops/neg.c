/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static int64_t integer(int64_t x, enum dtype dtype)
{
    (void)dtype;
    return (int64_t)(0 - (uint64_t)x);
}

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "integer", .inputs = "i32[4]=-2147483648,-1,0,5"},
    {.name = "byte", .inputs = "i8[4]=-128,-1,0,127"},
};

FUNCTION_OP_INTEGER(neg, "Neg", FN_NEG, cases, .integer = integer, .types = OP_SIGNED);
