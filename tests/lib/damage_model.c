/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/damage_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"

enum { LONG_TEXT = 5000 };

static void *allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void keep(void *arena, void *pointer)
{
    (void)arena, (void)pointer;
}

ProtobufCAllocator model_memory(struct model *m)
{
    return (ProtobufCAllocator){allocate, keep, &m->arena};
}

uint32_t below(struct model *m, size_t count)
{
    return draw(m->draws, (uint32_t)count);
}

/* ---- what there is ---- */

static void collect_body(struct model *m, size_t *count, Onnx__NodeProto ***nodes);

static void collect_graph(struct model *m, Onnx__GraphProto *graph)
{
    if (!graph || m->graph_count == GRAPHS_MAX)
        return;
    m->graphs[m->graph_count++] = graph;
    collect_body(m, &graph->n_node, &graph->node);
}

static void collect_body(struct model *m, size_t *count, Onnx__NodeProto ***nodes)
{
    if (m->body_count == BODIES_MAX)
        return;
    m->bodies[m->body_count++] = (struct body){count, nodes};
    for (size_t n = 0; n < *count; n++)
        for (size_t a = 0; a < (*nodes)[n]->n_attribute; a++)
            collect_graph(m, (*nodes)[n]->attribute[a]->g);
}

struct body *any_body(struct model *m)
{
    struct body *body = NULL;
    for (int k = 0; k < TRIES && !(body && *body->count); k++)
        body = &m->bodies[below(m, m->body_count)];
    return body && *body->count ? body : NULL;
}

Onnx__NodeProto *any_node(struct model *m)
{
    struct body *body = any_body(m);
    return body ? (*body->nodes)[below(m, *body->count)] : NULL;
}

Onnx__AttributeProto *any_attribute(struct model *m)
{
    Onnx__NodeProto *node = any_node(m);
    return node && node->n_attribute ? node->attribute[below(m, node->n_attribute)] : NULL;
}

Onnx__GraphProto *any_graph(struct model *m)
{
    return m->graphs[below(m, m->graph_count)];
}

Onnx__TensorProto *any_tensor(struct model *m)
{
    const Onnx__GraphProto *graph = any_graph(m);
    const Onnx__AttributeProto *attribute = any_attribute(m);
    if (graph->n_initializer)
        return graph->initializer[below(m, graph->n_initializer)];
    return attribute ? attribute->t : NULL;
}

Onnx__ValueInfoProto *any_port(struct model *m)
{
    const Onnx__GraphProto *graph = any_graph(m);
    size_t count = graph->n_input + graph->n_output, at = below(m, count);
    if (!count)
        return NULL;
    return at < graph->n_input ? graph->input[at] : graph->output[at - graph->n_input];
}

/* ---- texts and numbers ---- */

char *strange_text(struct model *m)
{
    static const char *const texts[] = {"",     "no such name", "\033[2J\n", "\xff\xfe",     "-1",
                                        "%s%n", "\"<&'>",       "/dev/zero", "../model.onnx"};
    uint32_t at = below(m, ARRAY_COUNT(texts) + 1);
    if (at < ARRAY_COUNT(texts))
        return arena_strdup(&m->arena, texts[at]);
    char *text = arena_alloc(&m->arena, LONG_TEXT + 1);
    return text ? memset(text, 'x', LONG_TEXT) : arena_strdup(&m->arena, "x");
}

static char *name_of_part(struct model *m)
{
    const Onnx__NodeProto *node = any_node(m);
    const Onnx__GraphProto *graph = any_graph(m);
    switch (below(m, 6)) {
    case 0:
        return strange_text(m);
    case 1:
        return graph->n_input ? graph->input[below(m, graph->n_input)]->name : strange_text(m);
    case 2:
        return graph->n_initializer ? graph->initializer[below(m, graph->n_initializer)]->name
                                    : strange_text(m);
    case 3:
        return node && node->n_input ? node->input[below(m, node->n_input)] : strange_text(m);
    default:
        return node && node->n_output ? node->output[below(m, node->n_output)] : strange_text(m);
    }
}

/* Never NULL: protobuf-c cannot write that into a list. */
char *any_name(struct model *m)
{
    char *name = name_of_part(m);
    return name ? name : strange_text(m);
}

float strange_float(struct model *m)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e38f, 1e-42f, -1, 0, 1e10f};
    return values[below(m, ARRAY_COUNT(values))];
}

void *longer(struct model *m, const void *array, size_t count, size_t item_bytes)
{
    void *copy = arena_array(&m->arena, count + 1, item_bytes);
    if (copy && count)
        memcpy(copy, array, count * item_bytes);
    return copy;
}

void change_ints(struct model *m, int64_t **list, size_t *count)
{
    uint32_t kind = below(m, 8), at = below(m, *count);
    if (kind == 0 && *count) {
        --*count;
    } else if (kind == 1 || !*count) {
        int64_t *made = longer(m, *list, *count, sizeof(**list));
        if (!made)
            return;
        made[*count] = (int64_t)draw_extreme(m->draws, 1);
        *list = made;
        ++*count;
    } else if (kind == 2) {
        *count = 0;
    } else {
        (*list)[at] = (int64_t)draw_extreme(m->draws, (uint64_t)(*list)[at]);
    }
}

/* ---- the whole ---- */

static bool change_versions(struct model *m)
{
    Onnx__ModelProto *proto = m->proto;
    if (!proto->n_opset_import || below(m, 8) == 0) {
        proto->ir_version = (int64_t)draw_extreme(m->draws, 7);
        proto->has_ir_version = true;
        return true;
    }
    Onnx__OperatorSetIdProto *set = proto->opset_import[below(m, proto->n_opset_import)];
    if (below(m, 6) == 0)
        set->domain = strange_text(m);
    else
        set->version =
            below(m, 3) ? 1 + below(m, 25) : draw_extreme(m->draws, (uint64_t)set->version);
    return true;
}

struct change {
    bool (*make)(struct model *m); /* false: there is nothing of the kind */
    uint32_t weight;
};

static const struct change changes[] = {
    {change_attribute, 10}, {add_attribute, 8},  {change_port, 10},    {change_tensor, 10},
    {fix_input, 10},        {rewire, 10},        {change_operator, 6}, {shuffle, 6},
    {build_functions, 3},   {build_branches, 3}, {change_versions, 4},
};

static bool change(struct model *m)
{
    uint32_t all = 0;
    for (int k = 0; k < ARRAY_COUNT(changes); k++)
        all += changes[k].weight;
    for (int try = 0; try < TRIES; try++) {
        int k = 0;
        for (uint32_t at = below(m, all); at >= changes[k].weight; k++)
            at -= changes[k].weight;
        if (changes[k].make(m))
            return true;
    }
    return false;
}

bool damage_model(struct bytes *x, const char *path, struct draws *draws)
{
    struct model m = {.path = path, .draws = draws};
    ProtobufCAllocator memory = model_memory(&m);
    m.proto = onnx__model_proto__unpack(&memory, x->size, x->data);
    bool changed = false;
    if (m.proto && m.proto->graph) {
        collect_graph(&m, m.proto->graph);
        for (size_t k = 0; k < m.proto->n_functions; k++)
            collect_body(&m, &m.proto->functions[k]->n_node, &m.proto->functions[k]->node);
        if (below(&m, 2))
            fix_whole_numbers(&m);
        changed = change(&m);
    }
    size_t size = changed ? onnx__model_proto__get_packed_size(m.proto) : 0;
    uint8_t *data = size ? malloc(size + 1) : NULL;
    if (data) {
        free(x->data);
        *x = (struct bytes){data, onnx__model_proto__pack(m.proto, data)};
    }
    arena_release(&m.arena);
    return data != NULL;
}
