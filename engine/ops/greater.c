/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_binary.h"

static double value(double a, double b)
{
    return a > b;
}

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    return integer_less(b, a, dtype);
}

static const struct op_case cases[] = {COMPARISON_CASES};

BINARY_OP(greater, "Greater", cases, .value = value, .integer = integer, .types = OP_NUMBER,
          .predicate = true);
