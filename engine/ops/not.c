/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

static int64_t integer(int64_t x, enum dtype dtype)
{
    (void)dtype;
    return !x;
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "bool[67]"},
    {.name = "image", .inputs = "bool[2,5,3,7]"},
};

UNARY_OP(not, "Not", NULL, cases, .integer = integer, .types = OP_BOOL);
