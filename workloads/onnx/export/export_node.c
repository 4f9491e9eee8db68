/* SPDX-License-Identifier: Apache-2.0
 *
 * A node as opset 17 has it. Operators of ridge take lists from attributes or inputs, whichever is
 * there; a file must have them where its opset wants them. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/export.h"

const char *export_const(struct exporter *x, const char *name, enum dtype dtype,
                         const struct shape *shape, const void *data)
{
    struct export_tensor *tensors =
        arena_grow(&x->arena, x->tensors, &x->tensor_cap, x->tensor_count + 1, sizeof(*tensors));
    size_t bytes = (size_t)shape_count(shape) * dtype_size(dtype);
    const void *copy = arena_copy(&x->arena, data, bytes ? bytes : 1);
    if (!tensors || !copy || !name)
        return NULL;
    x->tensors = tensors;
    tensors[x->tensor_count++] = (struct export_tensor){
        .name = name, .desc = desc_dense(dtype, shape, LAYOUT_PLAIN), .data = copy};
    return name;
}

const char *export_i64(struct exporter *x, const char *name, int count, const int64_t *data)
{
    static const int64_t none = 0;
    struct shape shape = count < 0 ? shape_scalar() : shape_of(count);
    return export_const(x, name, DTYPE_I64, &shape, count == 0 ? &none : data);
}

/* ---- attributes ---- */

static bool attr_tensor(struct exporter *x, const struct attr *attr, Onnx__AttributeProto *to)
{
    Onnx__TensorProto *tensor = arena_alloc(&x->arena, sizeof(*tensor));
    if (!tensor)
        return false;
    onnx__tensor_proto__init(tensor);
    tensor->n_dims = (size_t)attr->desc.shape.rank;
    tensor->dims = arena_copy(&x->arena, attr->desc.shape.dim, sizeof(attr->desc.shape.dim));
    tensor->has_data_type = true;
    tensor->data_type = dtype_to_onnx(attr->desc.dtype);
    tensor->has_raw_data = true;
    tensor->raw_data.len = (size_t)shape_count(&attr->desc.shape) * dtype_size(attr->desc.dtype);
    tensor->raw_data.data = arena_copy(&x->arena, attr->data, tensor->raw_data.len);
    to->t = tensor;
    return tensor->dims && (tensor->raw_data.data || !tensor->raw_data.len);
}

static bool attr_list(struct exporter *x, const struct attr *attr, Onnx__AttributeProto *to)
{
    size_t count = (size_t)attr->count;
    if (attr->kind == ATTR_INTS) {
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        to->n_ints = count;
        to->ints = arena_array(&x->arena, count + 1, sizeof(int64_t));
        if (to->ints)
            for (size_t k = 0; k < count; k++)
                to->ints[k] = attr->ints[k];
        return to->ints;
    }
    if (attr->kind == ATTR_FLOATS) {
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        to->n_floats = count;
        to->floats = arena_array(&x->arena, count + 1, sizeof(float));
        if (to->floats)
            for (size_t k = 0; k < count; k++)
                to->floats[k] = (float)attr->floats[k];
        return to->floats;
    }
    to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    to->n_strings = count;
    to->strings = arena_array(&x->arena, count + 1, sizeof(*to->strings));
    if (to->strings)
        for (size_t k = 0; k < count; k++)
            to->strings[k] = (ProtobufCBinaryData){
                strlen(attr->strings[k]), (uint8_t *)arena_strdup(&x->arena, attr->strings[k])};
    return to->strings;
}

static bool fill_attr(struct exporter *x, const struct attr *attr, Onnx__AttributeProto *to)
{
    onnx__attribute_proto__init(to);
    to->name = arena_strdup(&x->arena, attr->name);
    to->has_type = true;
    switch (attr->kind) {
    case ATTR_INT:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        to->has_i = true;
        to->i = attr->i;
        return to->name;
    case ATTR_FLOAT:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        to->has_f = true;
        to->f = (float)attr->f;
        return to->name;
    case ATTR_STRING:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        to->has_s = true;
        to->s.len = strlen(attr->s);
        to->s.data = (uint8_t *)arena_strdup(&x->arena, attr->s);
        return to->name && to->s.data;
    case ATTR_TENSOR:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        return to->name && attr_tensor(x, attr, to);
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRINGS:
        return to->name && attr_list(x, attr, to);
    case ATTR_GRAPH:
        break;
    }
    return false;
}

/* ---- a node of the file ---- */

static char **copy_names(struct exporter *x, const char *const *names, int count)
{
    char **copy = arena_array(&x->arena, (size_t)count + 1, sizeof(*copy));
    if (copy)
        for (int k = 0; k < count; k++)
            if (!(copy[k] = arena_strdup(&x->arena, names[k])))
                return NULL;
    return copy;
}

/* An operator of another domain that no form in ONNX replaces. */
static bool stands_as_it_is(const struct form *form, const char *op)
{
    return form->node && form->node->op->domain && strcmp(op, form->node->op->name) == 0;
}

enum status export_form(const struct form *form, const char *op, struct error *err)
{
    struct exporter *x = form->x;
    Onnx__NodeProto **nodes =
        arena_grow(&x->arena, x->nodes, &x->node_cap, x->node_count + 1, sizeof(*nodes));
    Onnx__NodeProto *made = arena_alloc(&x->arena, sizeof(*made));
    size_t attrs = (size_t)form->attr_count, all = attrs + (form->body != NULL);
    Onnx__AttributeProto *list = arena_array(&x->arena, attrs + 1, sizeof(*list));
    if (!nodes || !made || !list)
        return FAIL_NO_MEMORY(err);
    onnx__node_proto__init(made);
    made->op_type = arena_strdup(&x->arena, op);
    if (stands_as_it_is(form, op)) {
        made->domain = arena_strdup(&x->arena, form->node->op->domain);
        x->microsoft = x->microsoft || strcmp(form->node->op->domain, EXPORT_DOMAIN) != 0;
    }
    made->name = arena_strdup(&x->arena, form->outputs[0]);
    made->n_input = (size_t)form->input_count;
    made->input = copy_names(x, form->inputs, form->input_count);
    made->n_output = (size_t)form->output_count;
    made->output = copy_names(x, form->outputs, form->output_count);
    made->n_attribute = all;
    made->attribute = arena_array(&x->arena, attrs + 1, sizeof(*made->attribute));
    if (!made->op_type || !made->name || !made->input || !made->output || !made->attribute)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < attrs; k++) {
        made->attribute[k] = &list[k];
        if (!fill_attr(x, &form->attrs[k], &list[k]))
            return FAIL_NO_MEMORY(err);
    }
    if (form->body) {
        static const char body[] = "body";
        onnx__attribute_proto__init(&list[attrs]);
        list[attrs].name = (char *)(uintptr_t)body; /* packing does not write */
        list[attrs].has_type = true;
        list[attrs].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        list[attrs].g = form->body;
        made->attribute[attrs] = &list[attrs];
    }
    for (int k = 0; k < form->input_count; k++) {
        int value = graph_find_value(x->g, form->inputs[k]);
        if (value != NONE)
            x->used[value] = true;
    }
    x->nodes = nodes;
    nodes[x->node_count++] = made;
    return STATUS_OK;
}

/* ---- where opset 17 wants things ---- */

static struct attr *find_attr(const struct form *f, const char *name)
{
    for (int k = 0; k < f->attr_count; k++)
        if (strcmp(f->attrs[k].name, name) == 0)
            return &f->attrs[k];
    return NULL;
}

static void drop_attr(struct form *f, const char *name)
{
    struct attr *attr = find_attr(f, name);
    if (attr)
        *attr = f->attrs[--f->attr_count];
}

static void set_input(struct form *f, int at, const char *name)
{
    while (f->input_count <= at)
        f->inputs[f->input_count++] = "";
    f->inputs[at] = name;
}

static const char *float_input(const struct form *f, const char *name, double number)
{
    const struct value *x = &f->x->g->values[f->node->inputs[0]];
    struct shape scalar = shape_scalar();
    float single = (float)number, stored = single;
    floats_store(x->dtype == DTYPE_F64 ? DTYPE_F32 : x->dtype, &single, &stored, 1);
    const void *data = x->dtype == DTYPE_F64 ? (const void *)&number : (const void *)&stored;
    return export_const(f->x, name, x->dtype, &scalar, data);
}

static enum status move_attr(struct form *f, const struct attr_input *move, struct error *err)
{
    const struct attr *attr = find_attr(f, move->attr);
    if (!attr)
        return STATUS_OK;
    const char *name = arena_printf(&f->x->arena, "%s:%s", f->outputs[0], move->attr);
    if (attr->kind == ATTR_INTS)
        name = export_i64(f->x, name, attr->count, attr->ints);
    else if (attr->kind == ATTR_INT)
        name = export_i64(f->x, name, 1, &attr->i);
    else if (attr->kind == ATTR_FLOAT)
        name = float_input(f, name, attr->f);
    else
        return UNSUPPORTED(err, "attribute \"%s\" has an unexpected kind", move->attr);
    if (!name)
        return FAIL_NO_MEMORY(err);
    set_input(f, move->input, name);
    drop_attr(f, move->attr);
    return STATUS_OK;
}

/* Ours may have as an attribute what the standard takes as an input. */
static enum status move_attrs(struct form *f, struct error *err)
{
    for (const struct attr_input *a = f->node->op->attr_inputs; a && a->attr; a++)
        if (a->since <= EXPORT_OPSET)
            TRY(move_attr(f, a, err));
    return STATUS_OK;
}

/* The list that only newer opsets than the file's take as an input. */
static const struct attr_input *newer_input(const struct op *op)
{
    for (const struct attr_input *a = op->attr_inputs; a && a->attr; a++)
        if (a->since > EXPORT_OPSET)
            return a;
    return NULL;
}

static enum status input_to_attr(struct form *f, struct error *err)
{
    const struct attr_input *list = newer_input(f->node->op);
    if (!list || f->input_count <= list->input)
        return STATUS_OK;
    const struct value *axes = &f->x->g->values[f->node->inputs[list->input]];
    if (!axes->data || axes->dtype != DTYPE_I64)
        return UNSUPPORTED(err, "%s are known only at run time", list->attr);
    f->attrs[f->attr_count++] =
        attr_ints(list->attr, (int)shape_count(&axes->shape), (const int64_t *)axes->data);
    f->input_count = list->input;
    if (shape_count(&axes->shape) > 0)
        drop_attr(f, "noop_with_empty_axes");
    return find_attr(f, "noop_with_empty_axes")
               ? UNSUPPORTED(err, "noop_with_empty_axes needs a newer opset")
               : STATUS_OK;
}

/* The sizes of the parts, as they turned out. */
static enum status split_sizes(struct form *f, struct error *err)
{
    int64_t sizes[256];
    const struct graph *g = f->x->g;
    const struct value *x = &g->values[f->node->inputs[0]];
    if (f->node->op != &op_split || !find_attr(f, "num_outputs"))
        return STATUS_OK;
    int axis = shape_axis(&x->shape, node_int(f->node, "axis", 0));
    if (axis < 0 || f->output_count > ARRAY_COUNT(sizes))
        return UNSUPPORTED(err, "a Split into %d parts", f->output_count);
    for (int k = 0; k < f->output_count; k++)
        sizes[k] = g->values[f->node->outputs[k]].shape.dim[axis];
    drop_attr(f, "num_outputs");
    f->attrs[f->attr_count++] = attr_ints("split", f->output_count, sizes);
    return move_attrs(f, err);
}

/* ONNX Runtime has OneHot only for indices and depth of one type. */
static enum status one_hot_depth(struct form *f, struct error *err)
{
    if (f->node->op != &op_one_hot)
        return STATUS_OK;
    const struct value *indices = &f->x->g->values[f->node->inputs[0]];
    const struct value *depth = &f->x->g->values[f->node->inputs[1]];
    if (indices->dtype != DTYPE_I32 || depth->dtype != DTYPE_I64 || !depth->data)
        return STATUS_OK;
    int32_t number = (int32_t) * (const int64_t *)depth->data;
    const char *name = arena_printf(&f->x->arena, "%s:depth", f->outputs[0]);
    f->inputs[1] = export_const(f->x, name, DTYPE_I32, &depth->shape, &number);
    return f->inputs[1] ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Operators, and attributes, that came after opset 17. */
static enum status check_version(const struct form *f, struct error *err)
{
    static const char *const later_attrs[] = {"antialias", "keep_aspect_ratio_policy", "block_size",
                                              "output_dtype"};
    const struct op *op = f->node->op;
    if (op->since > EXPORT_OPSET)
        return UNSUPPORTED(err, "%s is newer than opset %d", op->name, EXPORT_OPSET);
    if (f->x->f8 && newer_input(op))
        return UNSUPPORTED(err, "%s as before opset %d cannot stand beside f8", op->name,
                           newer_input(op)->since);
    for (int k = 0; !op->domain && k < ARRAY_COUNT(later_attrs); k++)
        if (find_attr(f, later_attrs[k]))
            return UNSUPPORTED(err, "attribute \"%s\" is newer than opset %d", later_attrs[k],
                               EXPORT_OPSET);
    bool old_resize = op == &op_upsample || (op == &op_resize && f->input_count == 2);
    return old_resize ? UNSUPPORTED(err, "%s as before opset 11 cannot be written", op->name)
                      : STATUS_OK;
}

static const char *name_of(const struct graph *g, int value)
{
    return value == NONE ? "" : g->values[value].name;
}

static bool form_init(struct form *f)
{
    const struct node *node = f->node;
    struct arena *arena = &f->x->arena;
    f->inputs = arena_array(arena, (size_t)node->input_count + FORM_SLACK, sizeof(*f->inputs));
    f->outputs = arena_array(arena, (size_t)node->output_count + 1, sizeof(*f->outputs));
    f->attrs = arena_array(arena, (size_t)node->attr_count + FORM_SLACK, sizeof(*f->attrs));
    if (!f->inputs || !f->outputs || !f->attrs)
        return false;
    for (int k = 0; k < node->input_count; k++)
        f->inputs[k] = name_of(f->x->g, node->inputs[k]);
    for (int k = 0; k < node->output_count; k++)
        f->outputs[k] = name_of(f->x->g, node->outputs[k]);
    for (int k = 0; k < node->attr_count; k++)
        f->attrs[k] = node->attrs[k];
    f->input_count = node->input_count;
    f->output_count = node->output_count;
    f->attr_count = node->attr_count;
    return true;
}

/* What ridge's operators have and the standard's have not. */
static void drop_extras(struct form *f)
{
    const struct op *op = f->node->op;
    if (op->count_output && f->output_count > op->count_output)
        f->output_count = op->count_output; /* the real size says it by itself */
    if (op == &op_dropout)
        drop_attr(f, "ratio");
    if (op == &op_batch_normalization)
        drop_attr(f, "spatial");
}

enum status export_node(struct exporter *x, const struct node *node, struct error *err)
{
    struct form f = {.x = x, .node = node};
    bool done = false;
    if (node->post_count)
        return UNSUPPORTED(err, "it has a fused epilogue; export the graph before its passes");
    if (!form_init(&f))
        return FAIL_NO_MEMORY(err);
    TRY(export_decomposed(&f, &done, err));
    if (done)
        return STATUS_OK;
    drop_extras(&f);
    TRY(check_version(&f, err));
    TRY(move_attrs(&f, err));
    TRY(split_sizes(&f, err));
    TRY(input_to_attr(&f, err));
    TRY(one_hot_depth(&f, err));
    return export_form(&f, node->op->name, err);
}
