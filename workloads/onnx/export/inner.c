/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/onnx/export/inner.h"

struct graph *inner_new(struct exporter *x, const char *name)
{
    struct graph **list =
        arena_grow(&x->arena, x->inner, &x->inner_cap, x->inner_count + 1, sizeof(struct graph *));
    if (!list)
        return NULL;
    x->inner = list;
    struct graph *inner = graph_new(name);
    if (inner)
        list[x->inner_count++] = inner;
    return inner;
}

int inner_capture(struct graph *inner, const struct graph *from, int value)
{
    const struct value *v = &from->values[value];
    return graph_input(inner, v->name, v->dtype, v->shape, (struct fill){.kind = FILL_NONE});
}

/* Values in a body must not hide those outside: they are named after the graph. */
static enum status rename_values(struct exporter *x, struct graph *inner, int formal,
                                 struct error *err)
{
    TRY(graph_check(inner, err));
    for (int v = 0; v < inner->value_count; v++) {
        bool captured = false;
        for (int k = formal; k < inner->input_count; k++)
            captured = captured || inner->inputs[k] == v;
        const char *name = arena_printf(&x->arena, "%s/%s", inner->name, inner->values[v].name);
        if (!name)
            return FAIL_NO_MEMORY(err);
        if (!captured)
            graph_rename(inner, v, name);
    }
    return graph_check(inner, err);
}

/* Exports `inner` with the memory and the tensors of x. */
static enum status export_inner(struct exporter *x, struct graph *inner, int formal,
                                Onnx__GraphProto *proto, struct error *err)
{
    struct exporter child = *x;
    child.g = inner;
    child.nodes = NULL;
    child.node_count = child.node_cap = 0;
    enum status status = export_graph(&child, formal, proto, err);
    x->arena = child.arena;
    x->tensors = child.tensors;
    x->tensor_count = child.tensor_count;
    x->tensor_cap = child.tensor_cap;
    x->inner = child.inner;
    x->inner_count = child.inner_count;
    x->inner_cap = child.inner_cap;
    for (int k = formal; k < inner->input_count; k++) {
        int outside = graph_find_value(x->g, inner->values[inner->inputs[k]].name);
        if (outside != NONE)
            x->used[outside] = true;
    }
    return status;
}

enum status inner_inline(struct exporter *x, struct graph *inner, const char *const *names,
                         struct error *err)
{
    Onnx__GraphProto proto;
    TRY(rename_values(x, inner, 0, err));
    if (names)
        for (int k = 0; k < inner->output_count; k++)
            if (names[k] && *names[k])
                graph_rename(inner, inner->outputs[k], names[k]);
    TRY(export_inner(x, inner, 0, &proto, err));
    Onnx__NodeProto **nodes =
        arena_grow(&x->arena, x->nodes, &x->node_cap, x->node_count + proto.n_node, sizeof(*nodes));
    if (!nodes)
        return FAIL_NO_MEMORY(err);
    x->nodes = nodes;
    for (size_t k = 0; k < proto.n_node; k++)
        nodes[x->node_count++] = proto.node[k];
    return STATUS_OK;
}

enum status inner_body(struct exporter *x, struct graph *inner, int formal, Onnx__GraphProto **body,
                       struct error *err)
{
    *body = arena_alloc(&x->arena, sizeof(**body));
    if (!*body)
        return FAIL_NO_MEMORY(err);
    TRY(rename_values(x, inner, formal, err));
    return export_inner(x, inner, formal, *body, err);
}
