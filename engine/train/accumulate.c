/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/accumulate.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static int integer(struct graph *g, int64_t value)
{
    return graph_const_i64(g, -1, &value);
}

static int choose(struct graph *g, int condition, int yes, int no)
{
    return graph_node(g, op_where.name, NULL, INPUTS(condition, yes, no), NO_ATTRS);
}

static void sum_gradients(struct graph *g, int keep, int step, int count, const int *weights,
                          int *gradients, int *inputs)
{
    char name[200];
    inputs[UPDATE_RATE] = keep;
    inputs[UPDATE_STEP] = step;
    inputs[UPDATE_SCALE] = NONE;
    for (int k = 0; k < count; k++) {
        struct shape shape = gradient_shape(g, weights[k]);
        snprintf(name, sizeof(name), "%.150s.gradient", g->values[weights[k]].name);
        inputs[UPDATE_WEIGHTS + 2 * k] = graph_state(g, name, g->values[weights[k]].dtype, shape,
                                                     (struct fill){.kind = FILL_CONST});
        inputs[UPDATE_WEIGHTS + 2 * k + 1] = gradients[k];
    }
    graph_node_many(g, op_accumulate.name, NULL, UPDATE_WEIGHTS + 2 * count, inputs, NO_ATTRS,
                    count, gradients);
    for (int k = 0; !g->failed && k < count; k++)
        graph_state_after(g, inputs[UPDATE_WEIGHTS + 2 * k], gradients[k]);
}

int accumulate_gradients(struct graph *g, int count, const int *weights, int *gradients, int step,
                         int64_t batches)
{
    int *inputs = calloc((size_t)count * 2 + UPDATE_WEIGHTS, sizeof(*inputs));
    if (!inputs) {
        g->failed = true;
        FAIL_NO_MEMORY(&g->err);
        return NONE;
    }
    int group = integer(g, batches), zero = integer(g, 0);
    int place = make_binary(g, &op_mod, step, group); /* 1 in the first execution, 0 in the last */
    int first = make_binary(g, &op_equal, place, integer(g, 1));
    int keep = choose(g, first, make_number(g, DTYPE_F32, 0), make_number(g, DTYPE_F32, 1));
    int last = make_binary(g, &op_equal, place, zero);
    sum_gradients(g, keep, step, count, weights, gradients, inputs);
    free(inputs);
    return choose(g, last, make_div(g, step, group), zero);
}
