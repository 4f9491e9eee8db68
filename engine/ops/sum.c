/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    for (int k = 0; k < gradient_node(c)->op_inputs; k++)
        if (c->wanted[k])
            c->dx[k] = make_sum_to(g, c->dy[0], gradient_in(c, k));
    return STATUS_OK;
}

static const struct op_case cases[] = {VARIADIC_CASES};

VARIADIC_OP(sum, "Sum", FN_ADD, cases, .types = OP_FLOAT);
