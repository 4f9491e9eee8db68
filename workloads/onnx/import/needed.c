/* SPDX-License-Identifier: Apache-2.0
 *
 * Which contents must be known before the run: those that decide a shape or a branch, and all that
 * these are computed from. One sweep against the order of execution. Subgraphs share the set of
 * names: a name that means two things makes the answer too large, never too small. */
#include <string.h>

#include "workloads/onnx/import/import.h"

bool is_needed(const struct needed *needed, const char *name)
{
    for (size_t k = 0; k < needed->count; k++)
        if (strcmp(needed->names[k], name) == 0)
            return true;
    return false;
}

static enum status need(struct needed *needed, const char *name, struct error *err)
{
    if (!*text_of(name) || is_needed(needed, name))
        return STATUS_OK;
    needed->names = arena_grow(needed->arena, needed->names, &needed->cap, needed->count + 1,
                               sizeof(*needed->names));
    if (!needed->names)
        return FAIL_NO_MEMORY(err);
    needed->names[needed->count++] = name;
    return STATUS_OK;
}

static enum status need_inputs(struct needed *needed, const Onnx__NodeProto *node, unsigned mask,
                               struct error *err)
{
    for (size_t k = 0; k < node->n_input; k++)
        if (k >= 32 ? mask == ~0u : mask >> k & 1)
            TRY(need(needed, node->input[k], err));
    return STATUS_OK;
}

static bool gives_needed(const struct needed *needed, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_output; k++)
        if (is_needed(needed, node->output[k]))
            return true;
    return false;
}

static enum status visit_graph(const Onnx__GraphProto *graph, struct needed *needed,
                               struct error *err);

/* Subgraphs; true in *inside when something that goes into them must be known. */
static enum status visit_subgraphs(const Onnx__NodeProto *node, struct needed *needed, bool *inside,
                                   struct error *err)
{
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__GraphProto *graph = node->attribute[k]->g;
        if (!graph)
            continue;
        if (gives_needed(needed, node))
            for (size_t o = 0; o < graph->n_output; o++)
                TRY(need(needed, graph->output[o]->name, err));
        TRY(visit_graph(graph, needed, err));
        for (size_t i = 0; i < graph->n_input; i++)
            *inside = *inside || is_needed(needed, text_of(graph->input[i]->name));
    }
    return STATUS_OK;
}

static enum status visit_node(const Onnx__NodeProto *node, struct needed *needed, struct error *err)
{
    const char *name = text_of(node->op_type);
    const struct op *op = known_operator(node);
    bool all = gives_needed(needed, node) && !(op && op->reads == READS_SHAPE);
    unsigned mask = op ? op->const_inputs : 0;
    if (is_control(node)) {
        TRY(visit_subgraphs(node, needed, &all, err));
        mask = strcmp(name, "Loop") == 0 ? 3 : 0; /* an If may be decided at run time */
    }
    return need_inputs(needed, node, all ? ~0u : mask, err);
}

static enum status visit_graph(const Onnx__GraphProto *graph, struct needed *needed,
                               struct error *err)
{
    for (size_t k = graph->n_node; k-- > 0;)
        TRY(visit_node(graph->node[k], needed, err));
    return STATUS_OK;
}

enum status find_needed(const Onnx__GraphProto *graph, struct needed *needed, struct error *err)
{
    return visit_graph(graph, needed, err);
}
