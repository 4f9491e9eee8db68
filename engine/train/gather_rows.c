/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/gather_rows.h"

#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

struct gathering {
    struct graph *g;
    int ranks;
    int *of_all; /* per value that was there before: the same of all ranks; NONE: not asked for yet
                  */
};

static int64_t bytes_of(const struct graph *g, int v)
{
    return (int64_t)value_size(&g->values[v]);
}

/* Bytes of the rows and indices that a gradient is the sum of; -1: it is more than that. */
static int64_t row_bytes(const struct graph *g, int gradient)
{
    int n = g->values[gradient].producer;
    const struct node *node = n == NONE ? NULL : &g->nodes[n];
    if (!node || node->post_count)
        return -1;
    if (node->op == &op_add) {
        int64_t one = row_bytes(g, node->inputs[0]), other = row_bytes(g, node->inputs[1]);
        return one < 0 || other < 0 ? -1 : one + other;
    }
    if (node->op != &op_gather_gradient || node_int(node, "axis", 0) != 0 ||
        g->values[node->inputs[1]].shape.rank == 0)
        return -1;
    return bytes_of(g, node->inputs[0]) + bytes_of(g, node->inputs[1]);
}

/* Tables may share indices. */
static int of_all(struct gathering *r, int v)
{
    struct graph *g = r->g;
    enum phase phase = g->phase;
    if (r->of_all[v] != NONE)
        return r->of_all[v];
    g->phase = PHASE_COMMUNICATION;
    r->of_all[v] =
        graph_node(g, op_all_gather.name, NULL, INPUTS(v), ATTRS(attr_int("ranks", r->ranks)));
    g->phase = phase;
    return r->of_all[v];
}

static int sum_of_all(struct gathering *r, int gradient)
{
    struct node node = r->g->nodes[r->g->values[gradient].producer]; /* its lists stay */
    if (node.op == &op_add) {
        int one = sum_of_all(r, node.inputs[0]);
        return make_add(r->g, one, sum_of_all(r, node.inputs[1]));
    }
    int dy = of_all(r, node.inputs[0]), index = of_all(r, node.inputs[1]);
    return graph_node(r->g, node.op->name, NULL, INPUTS(dy, index), node.attr_count, node.attrs);
}

enum status gather_rows(struct graph *g, int ranks, int count, int *gradients, const bool *summed,
                        bool *gathered, struct error *err)
{
    size_t values = (size_t)g->value_count + 1;
    struct gathering r = {.g = g, .ranks = ranks, .of_all = malloc(values * sizeof(int))};
    enum phase phase = g->phase;
    if (!r.of_all)
        return FAIL_NO_MEMORY(err);
    for (size_t v = 0; v < values; v++)
        r.of_all[v] = NONE;
    g->phase = PHASE_BACKWARD;
    for (int k = 0; k < count && !g->failed; k++) {
        int64_t rows = summed[k] ? -1 : row_bytes(g, gradients[k]);
        gathered[k] = rows >= 0 && ranks * rows < bytes_of(g, gradients[k]);
        if (gathered[k])
            gradients[k] = sum_of_all(&r, gradients[k]);
    }
    g->phase = phase;
    free(r.of_all);
    return graph_failed(g, err);
}
