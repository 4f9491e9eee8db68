/* SPDX-License-Identifier: Apache-2.0
 * AveragePool. The divisor counts elements of the input, or with count_include_pad also padding;
 * what a window of ceil_mode sees beyond the padding never counts. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"auto_pad",     "ceil_mode", "count_include_pad", "dilations",
                                    "kernel_shape", "pads",      "strides",           NULL};

static double mean(const struct pooling *p, const double *x, int64_t position)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t t = 0; t < p->taps; t++) {
        int64_t at = p->offsets[t * p->positions + position];
        if (at < 0)
            continue;
        sum += x[at];
        count++;
    }
    if (node_int(p->node, "count_include_pad", 0))
        count = pooling_padded_taps(&p->window, position);
    return sum / (double)count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return pooling_reference(call, mean, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    const struct node *node = gradient_node(c);
    struct shape x = gradient_shape(c->g, gradient_in(c, 0));
    struct attr all[ARRAY_COUNT(attrs)];
    int count = node->attr_count;
    memcpy(all, node->attrs, (size_t)count * sizeof(*all));
    all[count] = attr_ints("output_shape", x.rank - 2, x.dim + 2);
    c->dx[0] =
        graph_node(c->g, op_average_pool_gradient.name, NULL, INPUTS(c->dy[0]), count + 1, all);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    pooling_cost(c, 1, cost);
}

static const struct op_case cases[] = {
    POOL_CASES,
    {.name = "3x3_pads_not_counted",
     .inputs = "f32[1,35,9,10]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "3x3_pads_counted",
     .inputs = "f32[1,16,9,10]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1"},
    {.name = "ceil_at_one_end",
     .inputs = "f32[1,3,13,12]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] ceil_mode=1"},
    {.name = "ceil_pads_counted",
     .inputs = "f32[1,3,12,12]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1 count_include_pad=1"},
    {.name = "ceil_window_larger_than_the_input",
     .inputs = "f32[1,4,2,3]",
     .attrs = "kernel_shape=[3,3] strides=[3,1] ceil_mode=1"},
    {.name = "same_lower_pads_counted",
     .inputs = "f32[1,3,11,8]",
     .attrs = "kernel_shape=[3,2] strides=[2,3] auto_pad=\"SAME_LOWER\" count_include_pad=1"},
    {.name = "7x7_to_one", .inputs = "f32[2,20,7,7]", .attrs = "kernel_shape=[7,7]"},
};

REGISTER(op, average_pool) = {
    .name = "AveragePool",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .window = true,
    .infer = pooling_infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
