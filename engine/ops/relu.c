/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static int64_t integer(int64_t x, enum dtype dtype)
{
    (void)dtype;
    return x < 0 ? 0 : x;
}

static const struct op_case cases[] = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
    {.name = "integer", .inputs = "i32[5]=-2147483648,-1,0,5,2147483647"},
    {.name = "byte", .inputs = "i8[4]=-128,-1,0,127"},
};

FUNCTION_OP_INTEGER(relu, "Relu", FN_RELU, cases, .integer = integer, .types = OP_SIGNED);
