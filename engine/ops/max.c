/* SPDX-License-Identifier: Apache-2.0
 *
 * A NaN in any input gives NaN, as in numpy. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    return integer_less(a, b, dtype) ? b : a;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    return gradient_of_choice(c, true);
}

static const struct op_case cases[] = {EXTREME_CASES};

VARIADIC_OP(max, "Max", FN_MAX, cases, .integer = integer, .types = OP_NUMBER);
