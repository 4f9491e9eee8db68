/* SPDX-License-Identifier: Apache-2.0
 * GlobalAveragePool: the mean of each channel. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/pooling.h"

static double value(const double *x, int64_t count, const struct node *node)
{
    (void)node;
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += x[k];
    return sum / (double)count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    pooling_reference_global(call, value);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    pooling_cost_global(c, 1, cost);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    struct shape x = gradient_shape(g, gradient_in(c, 0));
    int64_t count = shape_span(&x, 2, x.rank);
    c->dx[0] = make_expanded(g, make_share(g, c->dy[0], count ? count : 1), &x);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    GLOBAL_POOL_CASES,
};

REGISTER(op, global_average_pool) = {
    .name = "GlobalAveragePool",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = pooling_infer_global,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
