/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/autodiff.h"

#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

struct backward {
    struct graph *g;
    int values, nodes; /* of the graph before gradients are added */
    bool *needed;      /* per value: the loss's gradient by it is wanted, or by what leads to it */
    int *gradient;     /* per value: the sum so far; NONE: none yet */
    bool *wanted;      /* per input of the widest node */
    int *dx, *dy;
};

static bool has_gradient(const struct graph *g, int v)
{
    return v != NONE && dtype_is_float(g->values[v].dtype);
}

/* Everything on a path from one of by[] onwards, as far as something is trained through it. */
static void mark_needed(struct backward *b, int count, const int *by)
{
    for (int k = 0; k < count; k++)
        b->needed[by[k]] = true;
    for (int n = 0; n < b->nodes; n++) {
        const struct node *node = &b->g->nodes[n];
        bool any = false, passes = !node->dead && node->op != &op_stop_gradient;
        for (int k = 0; k < node->input_count && passes; k++)
            any = any || (has_gradient(b->g, node->inputs[k]) && b->needed[node->inputs[k]]);
        for (int k = 0; any && k < node->output_count; k++)
            if (has_gradient(b->g, node->outputs[k]))
                b->needed[node->outputs[k]] = true;
    }
}

static enum status collect(struct backward *b, const struct node *node, struct error *err)
{
    struct graph *g = b->g;
    int *inputs = node->inputs, count = node->op_inputs; /* the list stays where it is */
    const struct op *op = node->op;
    const char *name = node->name;
    for (int k = 0; k < count; k++) {
        int v = inputs[k];
        if (!b->wanted[k] || b->dx[k] == NONE)
            continue;
        if (!g->failed && !shape_equal(&g->values[b->dx[k]].shape, &g->values[v].shape))
            return FAIL(err, STATUS_FAILED,
                        "node \"%s\": the gradient rule of %s gives input %d another shape", name,
                        op->name, k);
        b->gradient[v] = b->gradient[v] == NONE ? b->dx[k] : make_add(g, b->gradient[v], b->dx[k]);
    }
    return graph_failed(g, err);
}

static enum status visit(struct backward *b, int n, struct error *err)
{
    struct graph *g = b->g;
    const struct node *node = &g->nodes[n];
    bool any = false, asked = false;
    if (node->dead)
        return STATUS_OK;
    for (int k = 0; k < node->output_count; k++) {
        int v = node->outputs[k];
        b->dy[k] = v == NONE ? NONE : b->gradient[v];
        any = any || b->dy[k] != NONE;
    }
    for (int k = 0; k < node->op_inputs; k++) {
        int v = node->inputs[k];
        b->dx[k] = NONE;
        b->wanted[k] = has_gradient(g, v) && b->needed[v];
        asked = asked || b->wanted[k];
    }
    if (!any || !asked)
        return STATUS_OK;
    if (node->post_count)
        return UNSUPPORTED(err, "node \"%s\" has a fused epilogue", node->name);
    if (!node->op->gradient)
        return UNSUPPORTED(err, "node \"%s\": %s has no gradient: %s", node->name, node->op->name,
                           node->op->no_gradient ? node->op->no_gradient : "it has no rule");
    struct gradient_call call = {.g = g, .node = n, .dy = b->dy, .wanted = b->wanted, .dx = b->dx};
    if (node->op->gradient(&call, err) != STATUS_OK)
        return error_context(err, "the gradient of node \"%s\"", g->nodes[n].name);
    struct node visited = g->nodes[n];
    return collect(b, &visited, err);
}

static enum status run(struct backward *b, int loss, int seed, int count, const int *by, int *of,
                       struct error *err)
{
    struct graph *g = b->g;
    if (shape_count(&g->values[loss].shape) != 1 || !has_gradient(g, loss))
        return UNSUPPORTED(err, "the loss \"%s\" is not one number", g->values[loss].name);
    mark_needed(b, count, by);
    int one = seed != NONE ? seed : make_number(g, g->values[loss].dtype, 1);
    b->gradient[loss] = make_reshaped_as(g, one, loss);
    for (int n = b->nodes - 1; n >= 0; n--)
        TRY(visit(b, n, err));
    for (int k = 0; k < count; k++)
        of[k] = b->gradient[by[k]];
    return graph_failed(g, err);
}

enum status autodiff(struct graph *g, int loss, int seed, int count, const int *by, int *of,
                     struct error *err)
{
    size_t widest = 1, values = (size_t)g->value_count + 1;
    TRY(graph_failed(g, err));
    for (int n = 0; n < g->node_count; n++) {
        size_t width = (size_t)(g->nodes[n].input_count + g->nodes[n].output_count);
        widest = width > widest ? width : widest;
    }
    struct backward b = {.g = g,
                         .values = g->value_count,
                         .nodes = g->node_count,
                         .needed = calloc(values, sizeof(bool)),
                         .gradient = malloc(values * sizeof(int)),
                         .wanted = calloc(widest, sizeof(bool)),
                         .dx = calloc(widest, sizeof(int)),
                         .dy = calloc(widest, sizeof(int))};
    enum phase phase = g->phase;
    enum status status = STATUS_OK;
    if (!b.needed || !b.gradient || !b.wanted || !b.dx || !b.dy)
        status = FAIL_NO_MEMORY(err);
    for (int v = 0; status == STATUS_OK && v < b.values; v++)
        b.gradient[v] = NONE;
    g->phase = PHASE_BACKWARD;
    if (status == STATUS_OK)
        status = run(&b, loss, seed, count, by, of, err);
    g->phase = phase;
    free(b.needed);
    free(b.gradient);
    free(b.wanted);
    free(b.dx);
    free(b.dy);
    return status;
}
