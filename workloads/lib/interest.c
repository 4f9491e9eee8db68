/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/interest.h"

#include <stdlib.h>

int interest_mask(struct graph *g, int lengths, int64_t steps)
{
    int32_t *number = malloc((size_t)(steps + 1) * sizeof(*number));
    if (number)
        for (int64_t t = 0; t < steps; t++)
            number[t] = (int32_t)t;
    int step = number ? graph_const(g, "steps", DTYPE_I32, shape_of(steps), number) : NONE;
    free(number);
    int64_t axis = 1;
    int ends =
        graph_node(g, "Unsqueeze", NULL, INPUTS(lengths, graph_const_i64(g, 1, &axis)), NO_ATTRS);
    return graph_node(g, "Less", "mask", INPUTS(step, ends), NO_ATTRS);
}

int interest_weights(struct graph *g, const struct interest *a)
{
    int64_t one[] = {a->batch, 1, a->width}, all[] = {a->batch, a->steps, a->width};
    int64_t flat[] = {a->batch, a->steps};
    int query = reshape(g, a->query, 3, one);
    query = graph_node(g, "Expand", NULL, INPUTS(query, graph_const_i64(g, 3, all)), NO_ATTRS);
    int difference = graph_node(g, "Sub", NULL, INPUTS(query, a->history), NO_ATTRS);
    int parts[] = {query, a->history, difference, mul(g, query, a->history)};
    int x = concat(g, 2, 4, parts);
    x = sigmoid(g, dense(g, x, "f1_att", 80));
    x = sigmoid(g, dense(g, x, "f2_att", 40));
    x = reshape(g, dense(g, x, "f3_att", 1), 2, flat);
    int never = graph_const_f32(g, -4294967295.0f); /* 1 - 2^32 */
    x = graph_node(g, "Where", NULL, INPUTS(a->mask, x, never), NO_ATTRS);
    if (a->divisor != 1)
        x = graph_node(g, "Div", NULL, INPUTS(x, graph_const_f32(g, (float)a->divisor)), NO_ATTRS);
    return graph_node(g, "Softmax", "attention", INPUTS(x), ATTRS(attr_int("axis", 1)));
}
