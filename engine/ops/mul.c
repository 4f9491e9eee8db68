/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int a = gradient_in(c, 0), b = gradient_in(c, 1), dy = c->dy[0];
    if (c->wanted[0])
        c->dx[0] = make_sum_to(g, make_mul(g, dy, b), a);
    if (c->wanted[1])
        c->dx[1] = make_sum_to(g, make_mul(g, dy, a), b);
    return STATUS_OK;
}

static const struct op_case cases[] = {ARITHMETIC_CASES};

BINARY_FUNCTION_OP(mul, "Mul", FN_MUL, cases, .integer = integer, .types = OP_NUMBER);
