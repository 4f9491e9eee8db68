/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/recompute.h"

#include <math.h>
#include <stdlib.h>

#include "engine/graph/cost.h"
#include "engine/graph/op.h"

struct recompute {
    struct graph *g;
    int nodes, values;
    int *last;         /* per value: the last forward node that reads it; NONE */
    double *crossing;  /* per node: bytes that a cut after it would keep */
    bool *kept, *need; /* per value: of a forward node's results */
    int *again;        /* per value: what is computed again in its place; NONE */
};

static bool is_forward(const struct recompute *r, int n)
{
    return n != NONE && r->g->nodes[n].phase == PHASE_FORWARD && !r->g->nodes[n].dead;
}

/* Whether a forward node computes it, so that it could be computed again. */
static bool is_activation(const struct recompute *r, int v)
{
    return v != NONE && is_forward(r, r->g->values[v].producer);
}

static void find_last_readers(struct recompute *r)
{
    for (int v = 0; v < r->values; v++)
        r->last[v] = r->again[v] = NONE;
    for (int n = 0; n < r->nodes; n++)
        for (int k = 0; is_forward(r, n) && k < r->g->nodes[n].input_count; k++)
            if (r->g->nodes[n].inputs[k] != NONE)
                r->last[r->g->nodes[n].inputs[k]] = n;
}

static void weigh_cuts(struct recompute *r)
{
    for (int v = 0; v < r->values; v++)
        for (int n = r->g->values[v].producer; is_activation(r, v) && n < r->last[v]; n++)
            r->crossing[n] += value_bytes(&r->g->values[v]);
}

/* The node in [from, to) after which the fewest bytes cross. */
static int cheapest_cut(const struct recompute *r, int from, int to)
{
    int best = from;
    for (int n = from; n < to; n++)
        if (is_forward(r, n) && r->crossing[n] < r->crossing[best])
            best = n;
    return best;
}

static void keep_across(struct recompute *r, int cut)
{
    for (int v = 0; v < r->values; v++)
        if (is_activation(r, v) && r->g->values[v].producer <= cut && r->last[v] > cut)
            r->kept[v] = true;
}

/* The last segment is kept as it is: the backward pass begins with it. So are results of the
 * graph, and what holds no floats, which decides and is small. */
static enum status choose_cuts(struct recompute *r, int segments, struct error *err)
{
    int forward = 0, last_cut = NONE;
    for (int n = 0; n < r->nodes; n++)
        forward = is_forward(r, n) ? n + 1 : forward;
    if (segments > forward / 2)
        return FAIL(err, STATUS_FAILED,
                    "recomputation in %d segments: the forward pass of %s has %d nodes, and a "
                    "segment needs two",
                    segments, r->g->name, forward);
    if (segments <= 0)
        segments = (int)(sqrt((double)forward) + 0.5);
    int length = segments > 0 ? forward / segments : forward;
    for (int s = 1; s < segments && length > 1; s++) {
        last_cut = cheapest_cut(r, s * length - length / 2, s * length + length / 2);
        keep_across(r, last_cut);
    }
    for (int v = 0; v < r->values; v++)
        if (is_activation(r, v) &&
            (r->g->values[v].producer > last_cut || !dtype_is_float(r->g->values[v].dtype)))
            r->kept[v] = true;
    for (int k = 0; k < r->g->output_count; k++)
        r->kept[r->g->outputs[k]] = true;
    return STATUS_OK;
}

/* What the backward pass reads, and what is needed to compute that. */
static void find_needed(struct recompute *r)
{
    for (int n = r->nodes - 1; n >= 0; n--) {
        const struct node *node = &r->g->nodes[n];
        bool needed = !node->dead && node->phase == PHASE_BACKWARD;
        for (int k = 0; is_forward(r, n) && k < node->output_count; k++)
            needed = needed || (node->outputs[k] != NONE && r->need[node->outputs[k]]);
        for (int k = 0; needed && k < node->input_count; k++) {
            int v = node->inputs[k];
            if (is_activation(r, v) && !r->kept[v])
                r->need[v] = true;
        }
    }
}

static int input_again(const struct recompute *r, int v)
{
    return v != NONE && r->again[v] != NONE ? r->again[v] : v;
}

static enum status compute_again(struct recompute *r, int n, struct error *err)
{
    struct graph *g = r->g;
    struct node node = g->nodes[n];
    size_t ins = (size_t)node.input_count + 1, outs = (size_t)node.output_count + 1;
    int *inputs = arena_array(&g->arena, ins, sizeof(int));
    int *outputs = arena_array(&g->arena, outs, sizeof(int));
    if (!inputs || !outputs)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node.input_count; k++)
        inputs[k] = input_again(r, node.inputs[k]);
    if (graph_node_many(g, node.op->name, NULL, node.input_count, inputs, node.attr_count,
                        node.attrs, node.output_count, outputs) != STATUS_OK)
        return graph_failed(g, err);
    for (int k = 0; k < node.output_count; k++) {
        int v = node.outputs[k];
        if (v != NONE && r->need[v])
            r->again[v] = outputs[k];
        else if (k > 0) /* running statistics are updated once; all operators write result 0 */
            graph_cut(g, outputs[k]);
    }
    return STATUS_OK;
}

static enum status rewrite(struct recompute *r, struct error *err)
{
    struct graph *g = r->g;
    g->phase = PHASE_BACKWARD;
    for (int n = 0; n < r->nodes; n++) {
        bool needed = false;
        for (int k = 0; is_forward(r, n) && k < g->nodes[n].output_count; k++)
            needed = needed || (g->nodes[n].outputs[k] != NONE && r->need[g->nodes[n].outputs[k]]);
        if (needed)
            TRY(compute_again(r, n, err));
    }
    for (int n = 0; n < r->nodes; n++)
        for (int k = 0; g->nodes[n].phase == PHASE_BACKWARD && k < g->nodes[n].input_count; k++)
            g->nodes[n].inputs[k] = input_again(r, g->nodes[n].inputs[k]);
    graph_compact(g); /* each is placed before its first reader */
    return graph_check(g, err);
}

enum status recompute_forward(struct graph *g, int segments, struct error *err)
{
    size_t values = (size_t)g->value_count + 1, nodes = (size_t)g->node_count + 1;
    struct recompute r = {.g = g,
                          .nodes = g->node_count,
                          .values = g->value_count,
                          .last = malloc(values * sizeof(int)),
                          .crossing = calloc(nodes, sizeof(double)),
                          .kept = calloc(values, sizeof(bool)),
                          .need = calloc(values, sizeof(bool)),
                          .again = malloc(values * sizeof(int))};
    enum phase phase = g->phase;
    enum status status = STATUS_OK;
    if (!r.last || !r.crossing || !r.kept || !r.need || !r.again)
        status = FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        find_last_readers(&r);
        weigh_cuts(&r);
        status = choose_cuts(&r, segments, err);
    }
    if (status == STATUS_OK) {
        find_needed(&r);
        status = rewrite(&r, err);
    }
    g->phase = phase;
    free(r.last);
    free(r.crossing);
    free(r.kept);
    free(r.need);
    free(r.again);
    return status;
}
