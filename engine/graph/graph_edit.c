/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes need: copying, checking and compacting whole graphs. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/graph/op.h"

int graph_uses(const struct graph *g, int value)
{
    int uses = 0;
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; !g->nodes[n].dead && k < g->nodes[n].input_count; k++)
            uses += g->nodes[n].inputs[k] == value;
    for (int k = 0; k < g->output_count; k++)
        uses += g->outputs[k] == value;
    return uses;
}

bool graph_set_attr(struct graph *g, struct node *node, struct attr attr)
{
    struct attr *attrs = arena_array(&g->arena, (size_t)node->attr_count + 1, sizeof(*attrs));
    if (!attrs)
        return false;
    int place = node->attr_count;
    for (int k = 0; k < node->attr_count; k++) {
        attrs[k] = node->attrs[k];
        if (strcmp(attrs[k].name, attr.name) == 0)
            place = k;
    }
    attrs[place] = attr;
    node->attr_count += place == node->attr_count;
    node->attrs = attrs;
    return true;
}

static enum status check_node(const struct graph *g, int n, struct error *err)
{
    const struct node *node = &g->nodes[n];
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE)
            continue;
        if (v < 0 || v >= g->value_count)
            return FAIL(err, STATUS_FAILED, "node \"%s\": input %d dangles", node->name, k);
        if (g->values[v].producer >= n)
            return FAIL(err, STATUS_FAILED, "node \"%s\" reads \"%s\" before it is computed",
                        node->name, g->values[v].name);
    }
    for (int k = 0; k < node->output_count; k++) {
        int v = node->outputs[k];
        if (v != NONE && g->values[v].producer != n)
            return FAIL(err, STATUS_FAILED, "value \"%s\" has two producers", g->values[v].name);
    }
    return STATUS_OK;
}

enum status graph_failed(const struct graph *g, struct error *err)
{
    if (g->failed && err)
        *err = g->err;
    return g->failed ? g->err.code : STATUS_OK;
}

enum status graph_check(const struct graph *g, struct error *err)
{
    TRY(graph_failed(g, err));
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            TRY(check_node(g, n, err));
    if (!g->output_count)
        return FAIL(err, STATUS_FAILED, "graph \"%s\" has no output", g->name);
    return STATUS_OK;
}

static bool copy_values(struct graph *to, const struct graph *from)
{
    for (int v = 0; v < from->value_count; v++)
        to->values[v].data_owned = false;
    to->value_count = from->value_count;
    for (int v = 0; v < from->value_count; v++)
        if (!(to->values[v].name = arena_strdup(&to->arena, from->values[v].name)))
            return false;
    return true;
}

static bool copy_node(struct graph *to, struct node *node)
{
    node->name = arena_strdup(&to->arena, node->name);
    node->inputs = arena_copy(&to->arena, node->inputs, (size_t)node->input_count * sizeof(int));
    node->outputs = arena_copy(&to->arena, node->outputs, (size_t)node->output_count * sizeof(int));
    return node->name && node->inputs && node->outputs;
}

struct graph *graph_copy(const struct graph *from)
{
    struct graph *to = graph_new(from->name);
    if (!to)
        return NULL;
    struct arena arena = to->arena;
    const char *name = to->name;
    *to = *from;
    to->arena = arena;
    to->name = name;
    to->value_count = 0; /* until none of them claims the data of `from` */
    to->owned = NULL;
    to->owned_free = NULL;
    to->called = NULL;
    to->values =
        arena_copy(&to->arena, from->values, (size_t)from->value_cap * sizeof(*to->values));
    to->nodes = arena_copy(&to->arena, from->nodes, (size_t)from->node_cap * sizeof(*to->nodes));
    to->inputs = arena_copy(&to->arena, from->inputs, from->input_cap * sizeof(int));
    to->outputs = arena_copy(&to->arena, from->outputs, from->output_cap * sizeof(int));
    to->states = arena_copy(&to->arena, from->states, from->state_cap * sizeof(*to->states));
    to->name_table = arena_copy(&to->arena, from->name_table, from->name_cap * sizeof(int));
    bool fine = to->values && to->nodes && to->inputs && to->outputs && to->states &&
                to->name_table && copy_values(to, from);
    for (int n = 0; fine && n < to->node_count; n++)
        fine = copy_node(to, &to->nodes[n]);
    for (int k = 0; fine && from->called && k < from->output_count; k++)
        if (graph_called(from, from->outputs[k]) != from->values[from->outputs[k]].name)
            graph_call(to, from->outputs[k], graph_called(from, from->outputs[k]));
    if (fine && !to->failed)
        return to;
    graph_free(to);
    return NULL;
}

enum { PRIVATE_DEPTH = 4 }; /* how far back is_ready looks */

/* Depth-first order over producers: keeps the order of nodes that are in order already. */
struct visit {
    struct graph *g;
    unsigned char *state; /* per node: 0 new, 1 open, 2 placed */
    int *stack, *order;
    int placed;
    int *readers;  /* per value: how many inputs of needed nodes it is */
    bool *carried; /* per value: something else than updates and nodes between ranks reads it */
};

static int first_missing_producer(const struct visit *v, const struct node *node)
{
    for (int k = 0; k < node->input_count; k++) {
        int producer = node->inputs[k] == NONE ? NONE : v->g->values[node->inputs[k]].producer;
        if (producer != NONE && v->state[producer] != 2)
            return producer;
    }
    return NONE;
}

static void place(struct visit *v, int root)
{
    int depth = 0;
    if (v->state[root] == 2)
        return;
    v->stack[depth++] = root;
    while (depth > 0) {
        int n = v->stack[depth - 1];
        int missing = first_missing_producer(v, &v->g->nodes[n]);
        if (missing != NONE && v->state[missing] == 0 && depth < v->g->node_count) {
            v->state[n] = 1;
            v->stack[depth++] = missing;
            continue;
        }
        v->state[n] = 2;
        v->order[v->placed++] = n;
        depth--;
    }
}

static void find_readers(struct visit *v, const unsigned char *needed)
{
    for (int n = 0; n < v->g->node_count; n++) {
        const struct node *node = &v->g->nodes[n];
        bool carries = node->phase != PHASE_UPDATE && node->phase != PHASE_COMMUNICATION;
        for (int k = 0; k < node->input_count && needed[n]; k++) {
            int value = node->inputs[k];
            if (value == NONE)
                continue;
            v->readers[value]++;
            v->carried[value] = v->carried[value] || carries;
        }
    }
}

/* The gradient of a weight: only updates and nodes between ranks read it. */
static bool is_last_gradient(const struct visit *v, const struct node *node)
{
    bool last = node->phase == PHASE_BACKWARD;
    for (int k = 0; k < node->output_count && last; k++)
        last = node->outputs[k] == NONE || !v->carried[node->outputs[k]];
    return last;
}

/* True where nothing is missing but what is computed for this node alone; exchanges keep their
 * order, which is that of all ranks. */
static bool is_ready(const struct visit *v, const struct node *node, int depth)
{
    for (int k = 0; k < node->input_count; k++) {
        int producer = node->inputs[k] == NONE ? NONE : v->g->values[node->inputs[k]].producer;
        if (producer == NONE || v->state[producer] == 2)
            continue;
        const struct node *from = &v->g->nodes[producer];
        if (depth == 0 || v->readers[node->inputs[k]] > 1 || from->phase != PHASE_BACKWARD ||
            from->op->between_ranks || !is_ready(v, from, depth - 1))
            return false;
    }
    return true;
}

/* Nodes between ranks wait for others; and the gradient of a weight is read so late that what it is
 * computed from would be kept for long, where a pass replaced its nodes by new ones at the end.
 * Both begin as early as they can. */
static void place_waiting(struct visit *v, const int *waiting, int count)
{
    for (int k = 0; k < count; k++) {
        const struct node *node = &v->g->nodes[waiting[k]];
        int depth = node->op->between_ranks ? 0 : PRIVATE_DEPTH;
        if (v->state[waiting[k]] == 0 && is_ready(v, node, depth))
            place(v, waiting[k]);
    }
}

static void place_all(struct visit *v, const unsigned char *needed, int *waiting)
{
    int count = 0;
    for (int n = 0; n < v->g->node_count; n++)
        if (needed[n] && (v->g->nodes[n].op->between_ranks || is_last_gradient(v, &v->g->nodes[n])))
            waiting[count++] = n;
    for (int n = 0; n < v->g->node_count; n++) {
        if (!needed[n])
            continue;
        place(v, n);
        place_waiting(v, waiting, count);
    }
}

/* Marks the producers of a node's inputs; whether one of them was new. */
static bool mark_producers(const struct graph *g, const struct node *node, unsigned char *needed)
{
    bool changed = false;
    for (int k = 0; k < node->input_count; k++) {
        int producer = node->inputs[k] == NONE ? NONE : g->values[node->inputs[k]].producer;
        if (producer == NONE || needed[producer])
            continue;
        needed[producer] = 1;
        changed = true;
    }
    return changed;
}

static void mark_needed(const struct graph *g, unsigned char *needed)
{
    for (int k = 0; k < g->output_count; k++)
        if (g->values[g->outputs[k]].producer != NONE)
            needed[g->values[g->outputs[k]].producer] = 1;
    bool changed = true;
    while (changed) { /* one sweep when nodes are in order; a few otherwise */
        changed = false;
        for (int n = g->node_count - 1; n >= 0; n--)
            changed = (needed[n] && mark_producers(g, &g->nodes[n], needed)) || changed;
    }
}

static void apply_order(struct graph *g, const struct visit *v, struct node *scratch)
{
    memcpy(scratch, g->nodes, (size_t)g->node_count * sizeof(*scratch));
    for (int k = 0; k < g->value_count; k++)
        g->values[k].producer = NONE;
    for (int n = 0; n < v->placed; n++) {
        g->nodes[n] = scratch[v->order[n]];
        for (int k = 0; k < g->nodes[n].output_count; k++) {
            int value = g->nodes[n].outputs[k];
            if (value == NONE)
                continue;
            g->values[value].producer = n;
            g->values[value].producer_out = k;
        }
    }
    g->node_count = v->placed;
}

void graph_compact(struct graph *g)
{
    size_t count = (size_t)g->node_count + 1;
    struct visit v = {.g = g,
                      .state = calloc(count, 1),
                      .stack = calloc(count, sizeof(int)),
                      .order = calloc(count, sizeof(int)),
                      .readers = calloc((size_t)g->value_count + 1, sizeof(int)),
                      .carried = calloc((size_t)g->value_count + 1, sizeof(bool))};
    unsigned char *needed = calloc(count, 1);
    struct node *scratch = calloc(count, sizeof(*scratch));
    int *waiting = calloc(count, sizeof(*waiting));
    if (v.state && v.stack && v.order && v.readers && v.carried && needed && scratch && waiting) {
        for (int k = 0; k < g->value_count; k++) {
            int producer = g->values[k].producer;
            if (producer != NONE && g->nodes[producer].dead)
                g->values[k].producer = NONE;
        }
        mark_needed(g, needed);
        find_readers(&v, needed);
        place_all(&v, needed, waiting);
        apply_order(g, &v, scratch);
    } else {
        FAIL_NO_MEMORY(&g->err);
        g->failed = true;
    }
    free(waiting);
    free(scratch);
    free(needed);
    free(v.carried);
    free(v.readers);
    free(v.order);
    free(v.stack);
    free(v.state);
}
