/* SPDX-License-Identifier: Apache-2.0
 * LogSoftmax. flatten = 1 (set by the importer for opsets before 13) joins the axes from `axis` on.
 */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/softmax.h"

static enum status reference(const struct ref_call *call, struct error *err)
{
    return softmax_reference(call, axis_log_softmax, err);
}

/* dy - e^y sum dy */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int first, end, y = gradient_out(c, 0);
    softmax_axes(gradient_node(c), gradient_shape(g, y).rank, &first, &end);
    int sum = make_sum_of_lines(g, c->dy[0], first, end);
    int part = make_mul(g, make_unary(g, &op_exp, y), sum);
    c->dx[0] = make_sub(g, c->dy[0], part);
    return STATUS_OK;
}

REGISTER(op, log_softmax) = {
    .name = "LogSoftmax",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .attrs = softmax_attrs,
    .infer = softmax_infer,
    .cost = softmax_cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(softmax_cases),
};
