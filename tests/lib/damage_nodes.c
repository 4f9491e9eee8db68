/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/damage_model.h"

#include "base/registry.h"
#include "engine/graph/op.h"

/* ---- nodes ---- */

static bool change_names(struct model *m, char ***names, size_t *count)
{
    uint32_t kind = below(m, 5);
    if (kind == 0 || !*count) {
        char **list = longer(m, *names, *count, sizeof(*list));
        if (!list)
            return false;
        list[*count] = any_name(m);
        *names = list;
        ++*count;
    } else if (kind == 1) {
        --*count;
    } else {
        (*names)[below(m, *count)] = any_name(m);
    }
    return true;
}

bool rewire(struct model *m)
{
    Onnx__NodeProto *node = any_node(m);
    if (!node)
        return false;
    return below(m, 3) ? change_names(m, &node->input, &node->n_input)
                       : change_names(m, &node->output, &node->n_output);
}

bool change_operator(struct model *m)
{
    Onnx__NodeProto *node = any_node(m);
    const struct op *op = op_at((int)below(m, (size_t)op_count()));
    if (!node)
        return false;
    if (below(m, 8) == 0)
        node->domain = strange_text(m);
    else
        node->op_type = arena_strdup(&m->arena, op->name);
    return true;
}

/* Nodes change places, are left out or stand twice; so do inputs, outputs and constants. */
bool shuffle(struct model *m)
{
    struct body *body = any_body(m);
    Onnx__GraphProto *graph = any_graph(m);
    if (!body)
        return false;
    Onnx__NodeProto **nodes = longer(m, *body->nodes, *body->count, sizeof(*nodes));
    size_t last = *body->count - 1, at = below(m, *body->count), other = below(m, *body->count);
    if (!nodes)
        return false;
    *body->nodes = nodes;
    switch (below(m, 5)) {
    case 0:
        nodes[*body->count] = nodes[at];
        ++*body->count;
        break;
    case 1:
        nodes[at] = nodes[last];
        --*body->count;
        break;
    case 2:
        nodes[last + 1] = nodes[at];
        nodes[at] = nodes[other];
        nodes[other] = nodes[last + 1];
        break;
    case 3: {
        Onnx__ValueInfoProto **ports = below(m, 2) ? graph->input : graph->output;
        size_t *count = ports == graph->input ? &graph->n_input : &graph->n_output;
        if (*count > 1)
            ports[at % *count] = ports[other % *count];
        else
            *count = 0;
        break;
    }
    default:
        if (!graph->n_initializer)
            return false;
        graph->initializer[at % graph->n_initializer] =
            graph->initializer[other % graph->n_initializer];
    }
    return true;
}

/* ---- towers ---- */

/* Limits of the importer lie at 32 and 64. */
static const uint32_t heights[] = {1, 2, 31, 32, 33, 63, 64, 65, 300};

static Onnx__NodeProto *node_like(struct model *m, const Onnx__NodeProto *from, char *op,
                                  const char *domain)
{
    Onnx__NodeProto *node = arena_copy(&m->arena, from, sizeof(*from));
    if (node) {
        node->op_type = op;
        node->domain = arena_strdup(&m->arena, domain);
        node->n_attribute = 0;
    }
    return node;
}

/* The same node with results of other names. */
static Onnx__NodeProto *second_call(struct model *m, const Onnx__NodeProto *first)
{
    Onnx__NodeProto *node = arena_copy(&m->arena, first, sizeof(*first));
    char **names = arena_array(&m->arena, first->n_output + 1, sizeof(*names));
    if (!node || !names)
        return NULL;
    for (size_t k = 0; k < first->n_output; k++)
        names[k] = arena_printf(&m->arena, "%s, again", first->output[k]);
    node->output = names;
    return node;
}

static Onnx__FunctionProto *add_function(struct model *m, const Onnx__NodeProto *call, char *name)
{
    Onnx__ModelProto *proto = m->proto;
    Onnx__FunctionProto **list = longer(m, proto->functions, proto->n_functions, sizeof(*list));
    Onnx__FunctionProto *f = arena_alloc(&m->arena, sizeof(*f));
    Onnx__NodeProto **nodes = arena_array(&m->arena, 2, sizeof(*nodes));
    if (!list || !f || !nodes)
        return NULL;
    onnx__function_proto__init(f);
    f->name = name;
    f->domain = arena_strdup(&m->arena, "tower");
    f->n_input = call->n_input;
    f->input = call->input;
    f->n_output = call->n_output;
    f->output = call->output;
    f->n_opset_import = proto->n_opset_import;
    f->opset_import = proto->opset_import;
    f->node = nodes;
    list[proto->n_functions++] = f;
    proto->functions = list;
    return f;
}

/* The node becomes a call of a function that calls the next, once or twice; the last one computes
 * it, or calls the first again. */
bool build_functions(struct model *m)
{
    struct body *body = any_body(m);
    if (!body)
        return false;
    size_t at = below(m, *body->count);
    Onnx__NodeProto *inner = (*body->nodes)[at];
    uint32_t height = heights[below(m, ARRAY_COUNT(heights))];
    bool twice = below(m, 2), round = below(m, 4) == 0;
    for (uint32_t k = 0; k < height; k++) {
        char *name = arena_printf(&m->arena, "floor%u", (unsigned)k);
        Onnx__FunctionProto *f = name ? add_function(m, inner, name) : NULL;
        if (!f)
            return false;
        if (k == 0 && round)
            inner = node_like(m, inner, arena_printf(&m->arena, "floor%u", (unsigned)height - 1),
                              "tower");
        f->node[f->n_node++] = inner;
        Onnx__NodeProto *second = inner && twice ? second_call(m, inner) : NULL;
        if (second)
            f->node[f->n_node++] = second;
        inner = inner ? node_like(m, inner, name, "tower") : NULL;
        if (!inner)
            return false;
    }
    (*body->nodes)[at] = inner;
    return true;
}

static Onnx__GraphProto *graph_of(struct model *m, Onnx__NodeProto *node)
{
    Onnx__GraphProto *graph = arena_alloc(&m->arena, sizeof(*graph));
    Onnx__NodeProto **nodes = arena_array(&m->arena, 1, sizeof(*nodes));
    Onnx__ValueInfoProto **ports = arena_array(&m->arena, node->n_output + 1, sizeof(*ports));
    if (!graph || !nodes || !ports)
        return NULL;
    onnx__graph_proto__init(graph);
    graph->name = arena_strdup(&m->arena, "branch");
    nodes[0] = node;
    graph->node = nodes;
    graph->n_node = 1;
    graph->output = ports;
    for (size_t k = 0; k < node->n_output; k++) {
        ports[k] = arena_alloc(&m->arena, sizeof(*ports[k]));
        if (!ports[k])
            return NULL;
        onnx__value_info_proto__init(ports[k]);
        ports[k]->name = node->output[k];
        graph->n_output++;
    }
    return graph;
}

static Onnx__AttributeProto *graph_attribute(struct model *m, const char *name,
                                             Onnx__GraphProto *graph)
{
    Onnx__AttributeProto *a = arena_alloc(&m->arena, sizeof(*a));
    if (!a)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(&m->arena, name);
    a->has_type = true;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    a->g = graph;
    return a;
}

static Onnx__NodeProto *branch(struct model *m, const Onnx__NodeProto *node, char **condition,
                               Onnx__GraphProto *deep, Onnx__GraphProto *flat)
{
    Onnx__NodeProto *made = node_like(m, node, arena_strdup(&m->arena, "If"), "");
    Onnx__AttributeProto **list = arena_array(&m->arena, 2, sizeof(*list));
    if (!made || !list || !deep || !flat)
        return NULL;
    list[0] = graph_attribute(m, "then_branch", deep);
    list[1] = graph_attribute(m, "else_branch", flat);
    made->n_input = 1;
    made->input = condition;
    made->attribute = list;
    made->n_attribute = list[0] && list[1] ? 2 : 0;
    return made;
}

/* The node becomes a branch in a branch in a branch. */
bool build_branches(struct model *m)
{
    struct body *body = any_body(m);
    char **condition = arena_array(&m->arena, 1, sizeof(*condition));
    if (!body || !condition)
        return false;
    condition[0] = any_name(m);
    size_t at = below(m, *body->count);
    Onnx__NodeProto *inner = (*body->nodes)[at];
    Onnx__GraphProto *flat = graph_of(m, inner);
    uint32_t height = heights[below(m, ARRAY_COUNT(heights))];
    for (uint32_t k = 0; k < height && inner; k++)
        inner = branch(m, inner, condition, graph_of(m, inner), flat);
    if (inner)
        (*body->nodes)[at] = inner;
    return inner != NULL;
}
