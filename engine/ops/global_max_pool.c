/* SPDX-License-Identifier: Apache-2.0
 * GlobalMaxPool: the largest element of each channel; NaN where there is one, which libraries may
 * pass over. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/pooling.h"

static double value(const double *x, int64_t count, const struct node *node)
{
    (void)node;
    double largest = x[0];
    for (int64_t k = 1; k < count; k++)
        largest = x[k] > largest || isnan(x[k]) ? x[k] : largest;
    return largest;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    pooling_reference_global(call, value);
    return STATUS_OK;
}

/* That of a pool whose window is the whole image. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    int x = gradient_in(c, 0);
    struct shape shape = gradient_shape(c->g, x);
    c->dx[0] = graph_node(c->g, op_max_pool_gradient.name, NULL, INPUTS(x, c->dy[0]),
                          ATTRS(attr_ints("kernel_shape", shape.rank - 2, shape.dim + 2)));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    GLOBAL_POOL_CASES,
};

REGISTER(op, global_max_pool) = {
    .name = "GlobalMaxPool",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = pooling_infer_global,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
