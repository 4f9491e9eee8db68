/* SPDX-License-Identifier: Apache-2.0
 * LRN: x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta.
 * Krizhevsky et al. 2012, section 3.3. */
#include <math.h>

#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"alpha", "beta", "bias", "size", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    if (c->in[0]->shape.rank < 2 || node_int(c->node, "size", 0) < 1)
        return FAIL(err, STATUS_FAILED, "LRN: input of rank %d, size %lld", c->in[0]->shape.rank,
                    (long long)node_int(c->node, "size", 0));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    double count = (double)shape_count(x);
    int64_t terms = smaller(node_int(c->node, "size", 1), 2 * x->dim[1]);
    cost->elementwise = (2 * (double)terms + 6) * count;
    cost->transcendentals = count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    int64_t size = node_int(call->node, "size", 1), channels = x->shape.dim[1];
    int64_t plane = shape_span(&x->shape, 2, x->shape.rank);
    int64_t before = (size - 1) / 2, after = size - 1 - before;
    double alpha = node_float(call->node, "alpha", 1e-4) / (double)size;
    double beta = node_float(call->node, "beta", 0.75), bias = node_float(call->node, "bias", 1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t channel = i / plane % channels;
        double sum = 0;
        int64_t first = before < channel ? channel - before : 0;
        int64_t last = after < channels - channel ? channel + after : channels - 1;
        for (int64_t k = first; k <= last && k < channels; k++) {
            double value = x->f[i + (k - channel) * plane];
            sum += value * value;
        }
        call->out[0]->f[i] = x->f[i] / pow(bias + alpha * sum, beta);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    const struct node *node = gradient_node(c);
    struct attr same[] = {attr_float("alpha", node_float(node, "alpha", 1e-4)),
                          attr_float("beta", node_float(node, "beta", 0.75)),
                          attr_float("bias", node_float(node, "bias", 1)),
                          attr_int("size", node_int(node, "size", 1))};
    (void)err;
    c->dx[0] = graph_node(c->g, op_lrn_gradient.name, NULL, INPUTS(c->dy[0], gradient_in(c, 0)),
                          ARRAY_COUNT(same), same);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "size_5", .inputs = "f32[1,37,6,7]{-9:9}", .attrs = "size=5"},
    {.name = "size_even", .inputs = "f32[2,9,5,3]{-9:9}", .attrs = "size=4 alpha=0.1"},
    {.name = "parameters",
     .inputs = "f32[1,16,5,5]{-9:9}",
     .attrs = "size=3 alpha=0.02 beta=0.5 bias=2.0"},
    {.name = "wider_than_channels", .inputs = "f32[1,3,4,4]{-9:9}", .attrs = "size=9 alpha=0.1"},
    {.name = "wider_than_any",
     .inputs = "f32[1,3,4,4]{-9:9}",
     .attrs = "size=1073741824 alpha=1e8"},
    {.name = "rank_3", .inputs = "f32[2,8,11]{-9:9}", .attrs = "size=5 alpha=0.1"},
};

REGISTER(op, lrn) = {
    .name = "LRN",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
