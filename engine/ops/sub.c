/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    if (c->wanted[0])
        c->dx[0] = make_sum_to(g, c->dy[0], gradient_in(c, 0));
    if (c->wanted[1])
        c->dx[1] = make_neg(g, make_sum_to(g, c->dy[0], gradient_in(c, 1)));
    return STATUS_OK;
}

static const struct op_case cases[] = {ARITHMETIC_CASES};

BINARY_FUNCTION_OP(sub, "Sub", FN_SUB, cases, .integer = integer, .types = OP_NUMBER);
