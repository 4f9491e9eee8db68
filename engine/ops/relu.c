/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static double value(double x, const struct node *node)
{
    (void)node;
    return x < 0 ? 0 : x; /* keeps NaN */
}

static int64_t integer(int64_t x, enum dtype dtype)
{
    (void)dtype;
    return x < 0 ? 0 : x;
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[67]{-3:3}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "double", .inputs = "f64[3,5]"},
    {.name = "half", .inputs = "f16[19]"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
    {.name = "integer", .inputs = "i32[5]=-2147483648,-1,0,5,2147483647"},
    {.name = "byte", .inputs = "i8[4]=-128,-1,0,127"},
};

UNARY_OP_CASES(relu, "Relu", value, cases, .integer = integer, .types = OP_SIGNED,
               .elementwise = 1);
