/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that only rows were read of needs no gradient of its own size, nor an update of it, where
 * the optimiser leaves an element alone whose gradient is 0: Sgd and Adagrad without decay. What
 * GatherGradients and the optimiser did for it becomes UpdateRows. Adam's moments would move on
 * without a gradient, so its tables stay as they are. A gradient that something else reads as well
 * (a norm to be clipped, an output, ranks that share it) stays, too, and so does that of a table
 * with fewer rows than twice the indices: sorting them costs more than reading it whole, with all
 * other weights in one step. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/update.h"

enum { READERS_MAX = 8 };

/* The GatherGradients whose sum a gradient is. */
struct readers {
    int count;
    int node[READERS_MAX];
    int64_t indices;
};

/* False where there are others in the sum. */
static bool find_readers(const struct graph *g, int gradient, struct readers *r)
{
    int n = g->values[gradient].producer;
    if (n == NONE || rewrite_only_user(g, gradient) == NONE)
        return false;
    const struct node *node = &g->nodes[n];
    if (node->op == &op_add && node->post_count == 0)
        return find_readers(g, node->inputs[0], r) && find_readers(g, node->inputs[1], r);
    if (node->op != &op_gather_gradient || node_int(node, "axis", 0) != 0 ||
        r->count == READERS_MAX)
        return false;
    r->node[r->count++] = n;
    r->indices += shape_count(&g->values[node->inputs[1]].shape);
    return strcmp(node_string(node, "mode", "rows"),
                  node_string(&g->nodes[r->node[0]], "mode", "rows")) == 0;
}

static bool leaves_others(const struct node *node)
{
    return (node->op == &op_sgd || node->op == &op_adagrad) && node_float(node, "decay", 0) == 0;
}

/* Weight t of the optimiser's node, as a node of its own. */
static enum status add_node(struct graph *g, const struct node *node, int t,
                            const struct readers *r, struct error *err)
{
    int width = update_width(node->op), slots = node->op->update->slots, count = 0;
    const int *of = node->inputs + UPDATE_WEIGHTS + t * width, *old = node->outputs;
    int inputs[UPDATE_WEIGHTS + 1 + UPDATE_SLOTS_MAX + 2 * READERS_MAX];
    int results[1 + UPDATE_SLOTS_MAX];
    const char *mode = node_string(&g->nodes[r->node[0]], "mode", "rows");
    struct attr attrs[] = {attr_string("optimiser", node->op->update->name),
                           attr_string("mode", mode),
                           attr_float("epsilon", node_float(node, "epsilon", 1e-10)),
                           attr_float("rate_decay", node_float(node, "rate_decay", 0))};
    for (; count < UPDATE_WEIGHTS; count++)
        inputs[count] = node->inputs[count];
    inputs[count++] = of[0];
    for (int k = 0; k < slots; k++)
        inputs[count++] = of[2 + k];
    for (int k = 0; k < r->count; k++) {
        inputs[count++] = g->nodes[r->node[k]].inputs[0];
        inputs[count++] = g->nodes[r->node[k]].inputs[1];
    }
    g->phase = node->phase;
    graph_node_many(g, op_update_rows.name, NULL, count, inputs, ARRAY_COUNT(attrs), attrs,
                    1 + slots, results);
    TRY(graph_failed(g, err));
    for (int k = 0; k <= slots; k++)
        rewrite_replace(g, old[t * (width - 1) + k], results[k]);
    return STATUS_OK;
}

/* The optimiser's node without the weights that are taken away. */
static enum status keep_others(struct graph *g, int n, const bool *taken, struct error *err)
{
    struct node node = g->nodes[n]; /* its lists stay where they are */
    int width = update_width(node.op), weights = update_weights(&node);
    int in = UPDATE_WEIGHTS, out = 0;
    int *inputs = arena_array(&g->arena, (size_t)node.input_count + 1, sizeof(int));
    int *old = arena_array(&g->arena, (size_t)node.output_count + 1, sizeof(int));
    int *fresh = arena_array(&g->arena, (size_t)node.output_count + 1, sizeof(int));
    if (!inputs || !old || !fresh)
        return FAIL_NO_MEMORY(err);
    memcpy(inputs, node.inputs, UPDATE_WEIGHTS * sizeof(int));
    for (int t = 0; t < weights; t++) {
        for (int k = 0; k < width && !taken[t]; k++)
            inputs[in++] = node.inputs[UPDATE_WEIGHTS + t * width + k];
        for (int k = 0; k < width - 1 && !taken[t]; k++)
            old[out++] = node.outputs[t * (width - 1) + k];
    }
    g->nodes[n].dead = true;
    if (out == 0)
        return STATUS_OK;
    g->phase = node.phase;
    graph_node_many(g, node.op->name, NULL, in, inputs, node.attr_count, node.attrs, out, fresh);
    TRY(graph_failed(g, err));
    for (int k = 0; k < out; k++)
        rewrite_replace(g, old[k], fresh[k]);
    return STATUS_OK;
}

static enum status split(struct graph *g, int n, struct error *err)
{
    int weights = update_weights(&g->nodes[n]), width = update_width(g->nodes[n].op);
    bool *taken = arena_array(&g->arena, (size_t)weights + 1, sizeof(*taken)), any = false;
    if (!taken)
        return FAIL_NO_MEMORY(err);
    for (int t = 0; t < weights; t++) {
        struct node node = g->nodes[n]; /* its lists stay where they are */
        const int *of = node.inputs + UPDATE_WEIGHTS + t * width;
        struct readers readers = {0};
        bool states = true;
        for (int k = 0; k < width; k++)
            states = states && (k == 1 || graph_state_of(g, of[k]) != NONE);
        if (!states || !find_readers(g, of[1], &readers) ||
            g->values[of[0]].shape.dim[0] < 2 * readers.indices)
            continue;
        TRY(add_node(g, &node, t, &readers, err));
        taken[t] = any = true;
    }
    return any ? keep_others(g, n, taken, err) : STATUS_OK;
}

enum status pass_update_rows(struct graph *g, struct error *err)
{
    enum phase phase = g->phase;
    int count = g->node_count;
    for (int n = 0; n < count; n++)
        if (!g->nodes[n].dead && leaves_others(&g->nodes[n]))
            TRY(split(g, n, err));
    g->phase = phase;
    return STATUS_OK;
}
