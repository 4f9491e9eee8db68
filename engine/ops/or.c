/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return a || b;
}

static const struct op_case cases[] = {
    {.name = "same", .inputs = "bool[2,3,4] bool[2,3,4]"},
    {.name = "image", .inputs = "bool[2,5,3,7] bool[2,5,3,7]"},
    {.name = "broadcast", .inputs = "bool[2,5,3,7] bool[5,1,1]"},
    {.name = "left", .inputs = "bool[5] bool[3,1]"},
};

BINARY_OP(or, "Or", cases, .integer = integer, .types = OP_BOOL, .predicate = true);
