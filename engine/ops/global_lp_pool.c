/* SPDX-License-Identifier: Apache-2.0
 * GlobalLpPool: (sum |x|^p)^(1/p) over each channel. */
#include <math.h>

#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"p", NULL};

static double value(const double *x, int64_t count, const struct node *node)
{
    double p = (double)node_int(node, "p", 2), sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += pow(fabs(x[k]), p);
    return pow(sum, 1 / p);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    pooling_reference_global(call, value);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    pooling_cost_global(c, 2, cost);
    cost->transcendentals = (double)shape_count(&c->out[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,7,6,5]"},
    {.name = "p_1", .inputs = "f32[2,7,6,5]", .attrs = "p=1"},
    {.name = "p_3", .inputs = "f32[1,4,9]", .attrs = "p=3"},
};

REGISTER(op, global_lp_pool) = {
    .name = "GlobalLpPool",
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = pooling_infer_global,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
