/* SPDX-License-Identifier: Apache-2.0
 * Names and types of a model's inputs and outputs. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/import/import.h"
#include "workloads/onnx/wire.h"

static bool is_initializer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t k = 0; k < graph->n_initializer; k++)
        if (strcmp(text_of(graph->initializer[k]->name), name) == 0)
            return true;
    return false;
}

static enum dtype dtype_of(const Onnx__ValueInfoProto *info)
{
    const Onnx__TypeProto *type = info->type;
    bool tensor = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    return tensor && type->tensor_type ? dtype_from_onnx(type->tensor_type->elem_type) : DTYPE_NONE;
}

/* Ports and, after them in the same block, their names. */
struct writer {
    struct onnx_port *ports; /* NULL: only counts */
    char *text;
    size_t count, bytes;
};

static const char *put_text(struct writer *w, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *to = w->ports ? memcpy(w->text + w->bytes, text, bytes) : NULL;
    w->bytes += bytes;
    return to;
}

static void put(struct writer *w, const Onnx__ValueInfoProto *info)
{
    const char *name = put_text(w, text_of(info->name));
    if (w->ports)
        w->ports[w->count] = (struct onnx_port){.name = name, .dtype = dtype_of(info)};
    w->count++;
}

static void put_all(struct writer *w, const Onnx__GraphProto *graph, struct onnx_interface *out)
{
    for (size_t k = 0; k < graph->n_input; k++)
        if (!is_initializer(graph, text_of(graph->input[k]->name)))
            put(w, graph->input[k]);
    out->input_count = (int)w->count;
    for (size_t k = 0; k < graph->n_output; k++)
        put(w, graph->output[k]);
    out->output_count = (int)w->count - out->input_count;
    out->op = put_text(w, graph->n_node == 1 ? text_of(graph->node[0]->op_type) : "");
}

enum status onnx_interface(const void *bytes, size_t size, struct onnx_interface *interface,
                           struct error *err)
{
    *interface = (struct onnx_interface){0};
    TRY(wire_check_model(bytes, size, err));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, bytes);
    if (!model || !model->graph) {
        if (model)
            onnx__model_proto__free_unpacked(model, NULL);
        return FAIL(err, STATUS_FAILED, "this is no ONNX model");
    }
    struct writer w = {0};
    put_all(&w, model->graph, interface);
    interface->ports = malloc(w.count * sizeof(*w.ports) + w.bytes);
    if (interface->ports) {
        w = (struct writer){.ports = interface->ports,
                            .text = (char *)(interface->ports + w.count)};
        put_all(&w, model->graph, interface);
    }
    onnx__model_proto__free_unpacked(model, NULL);
    return interface->ports ? STATUS_OK : FAIL_NO_MEMORY(err);
}
