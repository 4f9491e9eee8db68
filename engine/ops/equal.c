/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_binary.h"

static double value(double a, double b)
{
    return a == b;
}

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return a == b;
}

static const struct op_case cases[] = {COMPARISON_CASES,
                                       {.name = "bool", .inputs = "bool[67] bool[67]"}};

BINARY_OP(equal, "Equal", cases, .value = value, .integer = integer, .types = OP_ANY,
          .predicate = true);
