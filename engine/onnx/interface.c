/* SPDX-License-Identifier: Apache-2.0
 * The names of a model's inputs and outputs. */
#include <stdlib.h>
#include <string.h>

#include "engine/onnx/import.h"
#include "engine/onnx/wire.h"

static bool is_initializer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t k = 0; k < graph->n_initializer; k++)
        if (strcmp(text_of(graph->initializer[k]->name), name) == 0)
            return true;
    return false;
}

struct writer {
    char **list, *text; /* NULL: only counts */
    size_t count, bytes;
};

static void put(struct writer *w, const char *name)
{
    size_t bytes = strlen(name) + 1;
    if (w->list) {
        w->list[w->count] = w->text + w->bytes;
        memcpy(w->list[w->count], name, bytes);
    }
    w->count++;
    w->bytes += bytes;
}

static size_t put_all(struct writer *w, const Onnx__GraphProto *graph)
{
    for (size_t k = 0; k < graph->n_input; k++)
        if (!is_initializer(graph, text_of(graph->input[k]->name)))
            put(w, text_of(graph->input[k]->name));
    size_t inputs = w->count;
    for (size_t k = 0; k < graph->n_output; k++)
        put(w, text_of(graph->output[k]->name));
    put(w, graph->n_node == 1 ? text_of(graph->node[0]->op_type) : "");
    return inputs;
}

enum status onnx_interface(const void *bytes, size_t size, struct onnx_names *names,
                           struct error *err)
{
    *names = (struct onnx_names){0};
    TRY(wire_check_model(bytes, size, err));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, bytes);
    if (!model || !model->graph) {
        if (model)
            onnx__model_proto__free_unpacked(model, NULL);
        return FAIL(err, STATUS_FAILED, "this is no ONNX model");
    }
    struct writer w = {0};
    put_all(&w, model->graph);
    names->list = malloc(w.count * sizeof(char *) + w.bytes + 1);
    if (names->list) {
        w = (struct writer){.list = names->list, .text = (char *)(names->list + w.count)};
        names->input_count = (int)put_all(&w, model->graph);
        names->output_count = (int)w.count - names->input_count - 1;
    }
    onnx__model_proto__free_unpacked(model, NULL);
    return names->list ? STATUS_OK : FAIL_NO_MEMORY(err);
}
