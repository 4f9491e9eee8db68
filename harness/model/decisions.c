/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/decisions.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/family/narrow.h"
#include "engine/ops/family/quantize.h"
#include "harness/model/choices.h"

/* Of a value. */
struct trace {
    bool rounded; /* it comes from products, whose results depend on the precision */
    bool decided; /* it depends on a decision on such a value */
    bool wanted;  /* a first decision reads it */
};

static bool is_float(const struct graph *g, int v)
{
    return v != NONE && dtype_is_float(g->values[v].dtype);
}

static struct trace of_inputs(const struct node *node, const struct trace *traces)
{
    struct trace all = {.rounded = narrow_class_of(node->op) == NARROW_WORK};
    for (int k = 0; k < node->input_count; k++) {
        if (node->inputs[k] == NONE)
            continue;
        all.rounded = all.rounded || traces[node->inputs[k]].rounded;
        all.decided = all.decided || traces[node->inputs[k]].decided;
    }
    return all;
}

/* Roundings to integers and choices of experts are followed one by one (roundings.h), and what is
 * computed of integers alone is exact. */
static bool decides(const struct graph *g, const struct node *node, const struct trace *traces)
{
    bool makes_integers = false, of_rounded = false;
    bool rounds = narrow_class_of(node->op) == NARROW_WORK;
    if (quantize_is_rounding(node->op) || choice_is_followed(g, node))
        return false;
    for (int k = 0; k < node->input_count; k++)
        of_rounded = of_rounded ||
                     (is_float(g, node->inputs[k]) && (rounds || traces[node->inputs[k]].rounded));
    for (int k = 0; k < node->output_count; k++)
        makes_integers =
            makes_integers || (node->outputs[k] != NONE && !is_float(g, node->outputs[k]));
    return of_rounded && (makes_integers || node->op->row_sets || node->op->count_output);
}

static void trace_node(const struct graph *g, const struct node *node, struct trace *traces)
{
    struct trace all = of_inputs(node, traces);
    bool decision = decides(g, node, traces);
    for (int k = 0; decision && !all.decided && k < node->input_count; k++)
        if (is_float(g, node->inputs[k]))
            traces[node->inputs[k]].wanted = traces[node->inputs[k]].rounded;
    all.decided = all.decided || decision;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE)
            traces[node->outputs[k]] = all;
}

static int count_decided(const struct graph *g, const struct trace *traces)
{
    int count = 0;
    for (int k = 0; k < g->output_count; k++)
        count += traces[g->outputs[k]].decided;
    return count;
}

static int count_wanted(const struct graph *g, const struct trace *traces)
{
    int count = 0;
    for (int v = 0; v < g->value_count; v++)
        count += traces[v].wanted;
    return count;
}

/* Outputs that are compared come first, in their order. */
static void replace_outputs(struct graph *g, struct trace *traces)
{
    int kept = 0;
    for (int k = 0; k < g->output_count; k++) {
        int v = g->outputs[k];
        traces[v].wanted = traces[v].wanted && traces[v].decided;
        if (!traces[v].decided)
            g->outputs[kept++] = v;
    }
    g->output_count = kept;
    for (int v = 0; v < g->value_count; v++)
        if (traces[v].wanted)
            graph_output(g, v);
    graph_compact(g);
}

enum status graph_before_decisions(const struct graph *graph, struct graph **out, struct error *err)
{
    *out = NULL;
    struct trace *traces = calloc((size_t)graph->value_count + 1, sizeof(*traces));
    if (!traces)
        return FAIL_NO_MEMORY(err);
    for (int n = 0; n < graph->node_count; n++)
        trace_node(graph, &graph->nodes[n], traces);
    enum status status = STATUS_OK;
    if (count_decided(graph, traces) && count_wanted(graph, traces)) {
        *out = graph_copy(graph);
        if (*out)
            replace_outputs(*out, traces);
        status = *out ? graph_check(*out, err) : FAIL_NO_MEMORY(err);
    }
    free(traces);
    if (status != STATUS_OK) {
        graph_free(*out);
        *out = NULL;
    }
    return status;
}

enum status graph_after_decisions(const struct graph *graph, const struct graph *before,
                                  struct exe *made, struct graph **out, struct error *err)
{
    struct graph *g = *out = graph_copy(graph);
    if (!g)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < before->output_count; k++) {
        struct value *value = &g->values[before->outputs[k]];
        graph_cut(g, before->outputs[k]);
        value->kind = VALUE_CONST;
        value->data = exe_output(made, k);
        value->data_owned = false;
    }
    graph_compact(g);
    return STATUS_OK;
}

/* ---- a part of its own ---- */

static bool is_output_of(const struct graph *g, int v)
{
    bool found = false;
    for (int k = 0; k < g->output_count; k++)
        found = found || g->outputs[k] == v;
    return found;
}

/* What `before` computes becomes inputs; outputs among it are no longer any. */
static void keep_what_follows(struct graph *g, const struct graph *before)
{
    struct fill noise = {.kind = FILL_UNIFORM, .a = 0, .b = 1};
    int kept = 0;
    for (int k = 0; k < g->output_count; k++)
        if (!is_output_of(before, g->outputs[k]))
            g->outputs[kept++] = g->outputs[k];
    g->output_count = kept;
    for (int k = 0; k < before->output_count; k++)
        graph_make_input(g, before->outputs[k], noise);
}

static void keep_what_comes_first(struct graph *g, const struct graph *before)
{
    g->output_count = 0;
    for (int k = 0; k < before->output_count; k++)
        graph_output(g, before->outputs[k]);
}

static void drop_unused_inputs(struct graph *g)
{
    int kept = 0;
    for (int k = 0; k < g->input_count; k++)
        if (graph_uses(g, g->inputs[k]) > 0)
            g->inputs[kept++] = g->inputs[k];
    g->input_count = kept;
}

enum status graph_take_part(struct graph *g, const char *part, struct error *err)
{
    struct graph *before = NULL;
    bool second = part && strcmp(part, "after-decisions") == 0;
    if (!part)
        return STATUS_OK;
    if (!second && strcmp(part, "before-decisions") != 0)
        return FAIL(err, STATUS_FAILED, "--part \"%s\" is not before-decisions or after-decisions",
                    part);
    TRY(graph_before_decisions(g, &before, err));
    if (!before)
        return FAIL(err, STATUS_FAILED, "--part: %s decides nothing, it is one part", g->name);
    if (second)
        keep_what_follows(g, before);
    else
        keep_what_comes_first(g, before);
    graph_free(before);
    graph_compact(g);
    drop_unused_inputs(g);
    return graph_check(g, err);
}
