/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/damage_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/graph/op.h"

/* ---- tensors ---- */

static void change_raw(struct model *m, ProtobufCBinaryData *raw)
{
    uint64_t number;
    float real = strange_float(m);
    size_t words = raw->len / sizeof(number);
    if (below(m, 4) == 0 || !raw->len) {
        raw->len = below(m, raw->len + 1);
    } else if (words && below(m, 2)) {
        uint8_t *at = raw->data + below(m, words) * sizeof(number);
        memcpy(&number, at, sizeof(number));
        number = draw_extreme(m->draws, number);
        memcpy(at, &number, sizeof(number));
    } else if (raw->len >= sizeof(real)) {
        memcpy(raw->data + below(m, raw->len / sizeof(real)) * sizeof(real), &real, sizeof(real));
    }
}

static void change_contents(struct model *m, Onnx__TensorProto *t)
{
    if (t->has_raw_data)
        change_raw(m, &t->raw_data);
    else if (t->n_int64_data)
        change_ints(m, &t->int64_data, &t->n_int64_data);
    else if (t->n_float_data)
        t->float_data[below(m, t->n_float_data)] = strange_float(m);
    else if (t->n_int32_data)
        t->int32_data[below(m, t->n_int32_data)] = (int32_t)draw_extreme(m->draws, 1);
    else
        change_ints(m, &t->dims, &t->n_dims);
}

static void add_external(struct model *m, Onnx__TensorProto *t, const char *key, char *value)
{
    Onnx__StringStringEntryProto **list =
        longer(m, t->external_data, t->n_external_data, sizeof(*list));
    Onnx__StringStringEntryProto *entry = arena_alloc(&m->arena, sizeof(*entry));
    if (!list || !entry)
        return;
    onnx__string_string_entry_proto__init(entry);
    entry->key = arena_strdup(&m->arena, key);
    entry->value = value;
    list[t->n_external_data++] = entry;
    t->external_data = list;
}

bool change_tensor(struct model *m)
{
    Onnx__TensorProto *t = any_tensor(m);
    if (!t)
        return false;
    switch (below(m, 10)) {
    case 0:
    case 1:
        change_ints(m, &t->dims, &t->n_dims);
        break;
    case 2:
        t->data_type = (int)below(m, 24);
        t->has_data_type = true;
        break;
    case 3:
        t->name = any_name(m);
        break;
    case 4:
        t->has_data_location = true;
        t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        add_external(m, t, "location", strange_text(m));
        if (below(m, 2))
            add_external(m, t, below(m, 2) ? "offset" : "length",
                         arena_printf(&m->arena, "%lld", (long long)draw_extreme(m->draws, 0)));
        break;
    default:
        change_contents(m, t);
    }
    return true;
}

/* The contents that the file's own test gives the input, or NULL. */
static Onnx__TensorProto *tested_contents(struct model *m, size_t input)
{
    const char *slash = strrchr(m->path, '/');
    ProtobufCAllocator memory = model_memory(m);
    char *path = arena_printf(&m->arena, "%.*s/test_data_set_0/input_%zu.pb",
                              slash ? (int)(slash - m->path) : 0, m->path, input);
    struct bytes bytes = path && slash ? bytes_read(path) : (struct bytes){NULL, 0};
    Onnx__TensorProto *t =
        bytes.data ? onnx__tensor_proto__unpack(&memory, bytes.size, bytes.data) : NULL;
    free(bytes.data);
    return t;
}

/* False: the input is a constant already. */
static bool add_constant(struct model *m, size_t input, Onnx__TensorProto *t)
{
    Onnx__GraphProto *graph = m->graphs[0];
    Onnx__TensorProto **list =
        longer(m, graph->initializer, graph->n_initializer, sizeof(*graph->initializer));
    t->name = graph->input[input]->name;
    if (!list || !t->name)
        return false;
    for (size_t k = 0; k < graph->n_initializer; k++)
        if (graph->initializer[k]->name && strcmp(graph->initializer[k]->name, t->name) == 0)
            return false;
    list[graph->n_initializer++] = t;
    graph->initializer = list;
    return true;
}

bool fix_input(struct model *m)
{
    size_t at = below(m, m->graphs[0]->n_input);
    Onnx__TensorProto *t = m->graphs[0]->n_input ? tested_contents(m, at) : NULL;
    if (!t)
        return false;
    change_contents(m, t);
    return add_constant(m, at, t);
}

void fix_whole_numbers(struct model *m)
{
    for (size_t k = 0; k < m->graphs[0]->n_input; k++) {
        Onnx__TensorProto *t = tested_contents(m, k);
        if (t && t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
            add_constant(m, k, t);
    }
}

/* ---- types and shapes ---- */

static bool change_dim(struct model *m, Onnx__TensorShapeProto *shape)
{
    uint32_t kind = below(m, 6);
    if (kind == 0 || !shape->n_dim) {
        Onnx__TensorShapeProto__Dimension **list =
            longer(m, shape->dim, shape->n_dim, sizeof(*list));
        Onnx__TensorShapeProto__Dimension *dim = arena_alloc(&m->arena, sizeof(*dim));
        if (!list || !dim)
            return false;
        onnx__tensor_shape_proto__dimension__init(dim);
        list[shape->n_dim++] = dim;
        shape->dim = list;
    } else if (kind == 1) {
        shape->n_dim--;
        return true;
    }
    Onnx__TensorShapeProto__Dimension *dim = shape->dim[below(m, shape->n_dim)];
    bool named = kind == 2;
    uint64_t before = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                          ? (uint64_t)dim->dim_value
                          : 1;
    dim->value_case = named ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                            : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (named)
        dim->dim_param = strange_text(m);
    else
        dim->dim_value = (int64_t)draw_extreme(m->draws, before);
    return true;
}

/* A sequence of sequences of ... */
static Onnx__TypeProto *nest_type(struct model *m, Onnx__TypeProto *type, uint32_t depth)
{
    for (uint32_t k = 0; k < depth; k++) {
        Onnx__TypeProto *outer = arena_alloc(&m->arena, sizeof(*outer));
        Onnx__TypeProto__Sequence *sequence = arena_alloc(&m->arena, sizeof(*sequence));
        if (!outer || !sequence)
            break;
        onnx__type_proto__init(outer);
        onnx__type_proto__sequence__init(sequence);
        sequence->elem_type = type;
        outer->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        outer->sequence_type = sequence;
        type = outer;
    }
    return type;
}

bool change_port(struct model *m)
{
    static const uint32_t depths[] = {1, 30, 100, 1000};
    Onnx__ValueInfoProto *port = any_port(m);
    if (!port)
        return false;
    uint32_t kind = below(m, 10);
    bool tensor = port->type && port->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    if (kind == 0)
        port->name = any_name(m);
    else if (kind == 1)
        port->type = nest_type(m, port->type, depths[below(m, ARRAY_COUNT(depths))]);
    else if (kind == 2 || !tensor)
        port->type = NULL;
    else if (kind < 5)
        port->type->tensor_type->elem_type = (int)below(m, 24);
    else
        return port->type->tensor_type->shape && change_dim(m, port->type->tensor_type->shape);
    return true;
}

/* ---- attributes ---- */

/* Of the operator itself, at times of another one. */
static const char *attribute_name(struct model *m, const Onnx__NodeProto *node)
{
    const struct op *op = node->op_type ? op_find(node->op_type, NULL) : NULL;
    for (int k = 0; k < TRIES; k++) {
        size_t count = 0;
        if (!op || !op->attrs || below(m, 5) == 0)
            op = op_at((int)below(m, (size_t)op_count()));
        while (op->attrs && op->attrs[count])
            count++;
        if (count)
            return op->attrs[below(m, count)];
    }
    return "axis";
}

static ProtobufCBinaryData strange_word(struct model *m)
{
    static const char *const words[] = {"SAME_UPPER", "VALID",   "NOTSET", "reflect",
                                        "linear",     "reverse", "none",   "ij,jk->ik"};
    char *text = below(m, 3) ? arena_strdup(&m->arena, words[below(m, ARRAY_COUNT(words))])
                             : strange_text(m);
    return (ProtobufCBinaryData){.len = text ? strlen(text) : 0, .data = (uint8_t *)text};
}

static void change_value(struct model *m, Onnx__AttributeProto *a)
{
    if (a->t && below(m, 2))
        change_contents(m, a->t);
    else if (a->n_ints)
        change_ints(m, &a->ints, &a->n_ints);
    else if (a->n_floats)
        a->floats[below(m, a->n_floats)] = strange_float(m);
    else if (a->has_f)
        a->f = strange_float(m);
    else if (a->has_s)
        a->s = strange_word(m);
    else
        a->i = (int64_t)draw_extreme(m->draws, (uint64_t)a->i);
}

bool change_attribute(struct model *m)
{
    Onnx__AttributeProto *a = any_attribute(m);
    if (!a)
        return false;
    switch (below(m, 8)) {
    case 0:
        a->has_type = true;
        a->type = (Onnx__AttributeProto__AttributeType)below(m, 16);
        break;
    case 1:
        a->ref_attr_name = below(m, 2) ? a->name : strange_text(m);
        break;
    default:
        change_value(m, a);
    }
    return true;
}

bool add_attribute(struct model *m)
{
    Onnx__NodeProto *node = any_node(m);
    if (!node)
        return false;
    Onnx__AttributeProto **list = longer(m, node->attribute, node->n_attribute, sizeof(*list));
    Onnx__AttributeProto *a = arena_alloc(&m->arena, sizeof(*a));
    if (!list || !a)
        return false;
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(&m->arena, attribute_name(m, node));
    a->has_type = true;
    switch (below(m, 4)) {
    case 0:
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->has_i = true;
        a->i = (int64_t)draw_extreme(m->draws, 1);
        break;
    case 1:
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        a->has_f = true;
        a->f = strange_float(m);
        break;
    case 2:
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        a->has_s = true;
        a->s = strange_word(m);
        break;
    default:
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        for (uint32_t k = 0, count = 1 + below(m, 9); k < count; k++)
            change_ints(m, &a->ints, &a->n_ints);
    }
    list[node->n_attribute++] = a;
    node->attribute = list;
    return true;
}
