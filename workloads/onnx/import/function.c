/* SPDX-License-Identifier: Apache-2.0
 *
 * Local functions: the body of the function is imported in a scope of its own, whose names are the
 * function's and whose attributes are those of the call. */
#include <string.h>

#include "workloads/onnx/import/import.h"

enum { FIELD_ATTRIBUTE_PROTO = 11 };

const Onnx__FunctionProto *find_function(const struct importer *im, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < im->model->n_functions; k++) {
        const Onnx__FunctionProto *f = im->model->functions[k];
        if (strcmp(text_of(f->name), text_of(node->op_type)) == 0 &&
            strcmp(text_of(f->domain), text_of(node->domain)) == 0)
            return f;
    }
    return NULL;
}

static bool has_attr(Onnx__AttributeProto *const *attrs, size_t count, const char *name)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(text_of(attrs[k]->name), name) == 0)
            return true;
    return false;
}

/* Defaults of attributes came with onnx 1.13. The message definition of 1.12 does not know the
 * field and keeps its bytes, length first. */
static Onnx__AttributeProto *unpack_default(const ProtobufCMessageUnknownField *field)
{
    size_t skip = 0;
    if (field->tag != FIELD_ATTRIBUTE_PROTO || field->wire_type != 2)
        return NULL;
    while (skip < field->len && field->data[skip] & 0x80)
        skip++;
    return skip < field->len
               ? onnx__attribute_proto__unpack(NULL, field->len - skip - 1, field->data + skip + 1)
               : NULL;
}

/* What bodies may refer to: attributes of the call, then defaults. */
struct call_attrs {
    Onnx__AttributeProto **list;
    size_t count;
};

static enum status collect_attrs(struct importer *im, const struct scope *scope,
                                 const Onnx__NodeProto *node, const Onnx__FunctionProto *function,
                                 struct call_attrs *attrs, struct error *err)
{
    size_t limit = node->n_attribute + function->base.n_unknown_fields + 1;
    attrs->list = arena_array(&im->scratch, limit, sizeof(*attrs->list));
    if (!attrs->list)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__AttributeProto *resolved = scope_resolve(scope, node->attribute[k]);
        if (!resolved)
            continue;
        /* It may stand under another name at the outer call: a shallow copy with this one. */
        Onnx__AttributeProto *copy = arena_copy(&im->scratch, resolved, sizeof(*resolved));
        if (!copy)
            return FAIL_NO_MEMORY(err);
        copy->name = node->attribute[k]->name;
        attrs->list[attrs->count++] = copy;
    }
    for (unsigned k = 0; k < function->base.n_unknown_fields; k++) {
        Onnx__AttributeProto *made = unpack_default(&function->base.unknown_fields[k]);
        if (!made)
            continue;
        TRY(onnx_memory_keep(im->memory, made, err)); /* constants may point into it */
        if (!has_attr(attrs->list, attrs->count, text_of(made->name)))
            attrs->list[attrs->count++] = made;
    }
    return STATUS_OK;
}

static enum status import_body(struct importer *im, struct scope *scope, struct scope *body,
                               const Onnx__NodeProto *node, const Onnx__FunctionProto *function,
                               struct error *err)
{
    if (node->n_input > function->n_input || node->n_output > function->n_output)
        return FAIL(err, STATUS_FAILED, "the call has more inputs or outputs than the function");
    for (size_t k = 0; k < function->n_input; k++) {
        int value = NONE;
        if (k < node->n_input)
            TRY(scope_get(scope, node->input[k], &value, err));
        TRY(scope_put(im, body, function->input[k], value, err));
    }
    TRY(import_nodes(im, body, function->n_node, function->node, err));
    for (size_t k = 0; k < node->n_output; k++) {
        int value;
        TRY(scope_get(body, function->output[k], &value, err));
        TRY(scope_put(im, scope, node->output[k], value, err));
    }
    return STATUS_OK;
}

enum status import_call(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                        const Onnx__FunctionProto *function, struct error *err)
{
    struct call_attrs attrs = {0};
    if (im->depth >= CALL_DEPTH_MAX)
        return FAIL(err, STATUS_FAILED, "function \"%s\" calls itself, or calls nest too deep",
                    text_of(function->name));
    im->inlined += (int)(function->n_node < INLINED_MAX ? function->n_node : INLINED_MAX);
    if (im->inlined > INLINED_MAX)
        return UNSUPPORTED(err, "functions become more than %d nodes", INLINED_MAX);
    enum status status = collect_attrs(im, scope, node, function, &attrs, err);
    struct scope body = {.opset = find_opset(function->n_opset_import, function->opset_import),
                         .call_attrs = attrs.list,
                         .call_attr_count = attrs.count};
    if (!body.opset)
        body.opset = scope->opset;
    im->depth++;
    if (status == STATUS_OK)
        status = import_body(im, scope, &body, node, function, err);
    im->depth--;
    return status;
}
