/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return !a != !b;
}

static const struct op_case cases[] = {LOGIC_CASES};

BINARY_OP(xor, "Xor", cases, .integer = integer, .types = OP_BOOL, .predicate = true);
