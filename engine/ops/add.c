/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    for (int k = 0; k < 2; k++)
        if (c->wanted[k])
            c->dx[k] = make_sum_to(g, c->dy[0], gradient_in(c, k));
    return STATUS_OK;
}

static const struct op_case cases[] = {ARITHMETIC_CASES};

BINARY_FUNCTION_OP(add, "Add", FN_ADD, cases, .integer = integer, .types = OP_NUMBER);
