/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/onnx/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/wire.h"

enum { OPSET_MIN = 1, OPSET_MAX = 25 };

/* ---- initialisers ---- */

/* Weights are parameters: floats that training would change. Everything else is constant. */
enum status import_tensor(struct importer *im, const char *name, const Onnx__TensorProto *tensor,
                          bool weight, int *value, struct error *err)
{
    struct desc desc;
    const void *data;
    const char *known = name && *name ? name : NULL;
    if (onnx_tensor_read(im->memory, tensor, &desc, &data, err) != STATUS_OK)
        return error_context(err, "tensor \"%s\"", text_of(name));
    *value = graph_param(im->g, known, desc.dtype, desc.shape, (struct fill){0});
    TRY(graph_failed(im->g, err));
    im->g->values[*value].data = data;
    if (!weight || !dtype_is_float(desc.dtype))
        im->g->values[*value].kind = VALUE_CONST;
    return STATUS_OK;
}

enum status import_initializers(struct importer *im, struct scope *scope,
                                const Onnx__GraphProto *graph, struct error *err)
{
    if (graph->n_sparse_initializer)
        return UNSUPPORTED(err, "sparse initializers are not supported");
    for (size_t k = 0; k < graph->n_initializer; k++) {
        const Onnx__TensorProto *tensor = graph->initializer[k];
        int value = NONE;
        struct scope own = *scope;
        own.parent = NULL;
        if (*text_of(tensor->name) && scope_find(&own, tensor->name) != UNKNOWN_NAME)
            return FAIL(err, STATUS_FAILED, "two initializers are called \"%s\"", tensor->name);
        TRY(import_tensor(im, tensor->name, tensor, true, &value, err));
        TRY(scope_put(im, scope, tensor->name, value, err));
    }
    return STATUS_OK;
}

/* ---- inputs ---- */

static const struct onnx_binding *find_binding(const struct importer *im, const char *name)
{
    for (int k = 0; k < im->options->binding_count; k++)
        if (strcmp(im->options->bindings[k].name, name) == 0)
            return &im->options->bindings[k];
    return NULL;
}

/* Fields of one of several kinds share memory: their kind must be asked first. */
static const char *symbol_of(const Onnx__TensorShapeProto__Dimension *dim)
{
    bool symbolic = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return symbolic ? text_of(dim->dim_param) : "";
}

static const Onnx__TypeProto__Tensor *tensor_type_of(const Onnx__ValueInfoProto *info)
{
    const Onnx__TypeProto *type = info->type;
    bool tensor = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    return tensor ? type->tensor_type : NULL;
}

static const Onnx__TensorShapeProto *shape_of_input(const Onnx__ValueInfoProto *info)
{
    const Onnx__TypeProto__Tensor *type = tensor_type_of(info);
    return type ? type->shape : NULL;
}

/* NULL: no memory. */
static const char *dim_name(struct importer *im, const Onnx__ValueInfoProto *info, int k)
{
    const char *symbol = symbol_of(shape_of_input(info)->dim[k]);
    return open_dim_name(&im->scratch, symbol, text_of(info->name), k);
}

/* The size that was given for an open dimension of the input; 0: none was. */
static enum status given_dim(struct importer *im, const Onnx__ValueInfoProto *info, int k,
                             int64_t *size, struct error *err)
{
    const char *name = dim_name(im, info, k);
    return name ? open_dim_size(im->options->dims, im->options->dim_count, name, size, err)
                : FAIL_NO_MEMORY(err);
}

static enum status input_dim(struct importer *im, const Onnx__ValueInfoProto *info, int k,
                             int64_t *size, struct error *err)
{
    const Onnx__TensorShapeProto__Dimension *dim = shape_of_input(info)->dim[k];
    *size = 0;
    /* Exporters write 0 or -1 for "any" as well, mostly for the batch. */
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        *size = dim->dim_value;
        if (*size > 0 || (*size == 0 && k > 0))
            return STATUS_OK;
    }
    TRY(given_dim(im, info, k, size, err));
    if (*size > 0)
        return STATUS_OK;
    const char *name = dim_name(im, info, k);
    const struct open_dim *open = name ? open_dims_find(&im->dims, name) : NULL;
    if (open ? open->batch : k == 0) {
        *size = im->options->batch > 0 ? im->options->batch : 1;
        im->batch_used = true;
        return STATUS_OK;
    }
    const char *slash = strrchr(im->file, '/');
    return UNSUPPORTED(err,
                       "dimension %d (\"%s\") is left open by the file; give its size: %s:%s=N", k,
                       name ? name : "", slash ? slash + 1 : im->file, name ? name : "");
}

/* "[2,batch,3]" */
static void declared_text(const Onnx__TensorShapeProto *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t k = 0; k < shape->n_dim && used < size; k++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[k];
        bool number = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (number && dim->dim_value > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", k ? "," : "",
                                     (long long)dim->dim_value);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%s", k ? "," : "",
                                     *symbol_of(dim) ? symbol_of(dim) : "?");
    }
    if (used < size)
        snprintf(text + used, size - used, "]");
}

/* Contents may settle what the file leaves open, not contradict what it says. */
static enum status check_contents(struct importer *im, const Onnx__ValueInfoProto *info,
                                  const struct shape *given, struct error *err)
{
    const Onnx__TensorShapeProto *declared = shape_of_input(info);
    bool fits = declared->n_dim == (size_t)given->rank;
    for (int k = 0; fits && k < given->rank; k++) {
        const Onnx__TensorShapeProto__Dimension *dim = declared->dim[k];
        int64_t wanted = 0;
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            wanted = dim->dim_value; /* not above 0: any size */
        if (wanted <= 0)
            TRY(given_dim(im, info, k, &wanted, err));
        fits = wanted <= 0 || wanted == given->dim[k];
    }
    if (fits)
        return STATUS_OK;
    char file[160], contents[96];
    declared_text(declared, file, sizeof(file));
    return FAIL(err, STATUS_FAILED, "its contents have the shape %s, the file says %s",
                shape_text(given, contents), file);
}

/* A size of 0 is a legal empty tensor, too: contents of that shape make it one. */
static void note_zero(struct importer *im, const Onnx__ValueInfoProto *info,
                      const Onnx__TensorShapeProto *declared, const struct shape *made)
{
    char file[160], here[96];
    const Onnx__TensorShapeProto__Dimension *first = declared->n_dim ? declared->dim[0] : NULL;
    if (im->g->note || !first || made->dim[0] == 0 || first->dim_value ||
        first->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return;
    declared_text(declared, file, sizeof(file));
    im->g->note = arena_printf(
        &im->g->arena,
        "input \"%s\": the file says %s, with the size 0 for \"?\", which was taken as "
        "unknown: it is %s here",
        text_of(info->name), file, shape_text(made, here));
}

static const char *element_name(int type, char *text, size_t size)
{
    const char *name = type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING       ? "string"
                       : type == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64  ? "complex64"
                       : type == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128 ? "complex128"
                                                                           : NULL;
    if (name)
        return name;
    snprintf(text, size, "%d", type);
    return text;
}

static enum status input_type(struct importer *im, const Onnx__ValueInfoProto *info,
                              struct desc *desc, struct error *err)
{
    const Onnx__TypeProto__Tensor *type = tensor_type_of(info);
    if (!type)
        return UNSUPPORTED(err, "it is no tensor (sequence, map or optional)");
    const struct onnx_binding *binding = find_binding(im, text_of(info->name));
    enum dtype dtype = dtype_from_onnx(type->elem_type);
    char number[16];
    if (dtype == DTYPE_NONE)
        return UNSUPPORTED(err, "element type %s is not supported",
                           element_name(type->elem_type, number, sizeof(number)));
    if (binding) {
        *desc = binding->desc;
        if (binding->desc.dtype != dtype)
            return FAIL(err, STATUS_FAILED, "its contents are %s, the file says %s",
                        dtype_name(binding->desc.dtype), dtype_name(dtype));
        return type->shape ? check_contents(im, info, &desc->shape, err) : STATUS_OK;
    }
    const Onnx__TensorShapeProto *shape = type->shape;
    if (!shape)
        return UNSUPPORTED(err, "the file does not say its shape; give its contents");
    if (shape->n_dim > RANK_MAX)
        return UNSUPPORTED(err, "rank %zu; at most %d is supported", shape->n_dim, RANK_MAX);
    struct shape made = {.rank = (int)shape->n_dim};
    for (int k = 0; k < made.rank; k++)
        TRY(input_dim(im, info, k, &made.dim[k], err));
    char text[96];
    if (!onnx_shape_sane(&made))
        return FAIL(err, STATUS_FAILED, "the shape %s makes no sense", shape_text(&made, text));
    note_zero(im, info, shape, &made);
    *desc = desc_dense(dtype, &made, LAYOUT_PLAIN);
    return STATUS_OK;
}

static enum status add_input(struct importer *im, struct scope *scope,
                             const Onnx__ValueInfoProto *info, const struct needed *needed,
                             struct error *err)
{
    struct desc desc = {.dtype = DTYPE_NONE};
    const struct onnx_binding *binding = find_binding(im, text_of(info->name));
    TRY(input_type(im, info, &desc, err));
    bool constant =
        binding && binding->data && (binding->constant || is_needed(needed, text_of(info->name)));
    int value = constant ? graph_const(im->g, info->name, desc.dtype, desc.shape, binding->data)
                         : graph_input(im->g, info->name, desc.dtype, desc.shape,
                                       (struct fill){.kind = FILL_NONE});
    TRY(graph_failed(im->g, err));
    return scope_put(im, scope, info->name, value, err);
}

/* Of two ports with one name nobody could say which is meant. */
static enum status check_names(struct importer *im, const char *what, size_t count,
                               Onnx__ValueInfoProto *const *ports, struct error *err)
{
    struct scope seen = {.opset = 0};
    for (size_t k = 0; k < count; k++) {
        const char *name = text_of(ports[k]->name);
        if (*name && scope_find(&seen, name) != UNKNOWN_NAME)
            return FAIL(err, STATUS_FAILED, "two %ss are called \"%s\"", what, name);
        TRY(scope_put(im, &seen, name, (int)k, err));
    }
    return STATUS_OK;
}

static enum status import_inputs(struct importer *im, struct scope *scope, struct error *err)
{
    const Onnx__GraphProto *graph = im->model->graph;
    struct needed needed = {.arena = &im->scratch};
    bool has_contents = false;
    for (int k = 0; k < im->options->binding_count; k++)
        has_contents = has_contents || im->options->bindings[k].data;
    if (has_contents)
        TRY(find_needed(graph, &needed, err));
    TRY(check_names(im, "input", graph->n_input, graph->input, err));
    for (size_t k = 0; k < graph->n_input; k++) {
        const char *name = text_of(graph->input[k]->name);
        /* Before IR 4 initialisers had to be inputs too: defaults that nobody overrides here. */
        if (scope_find(scope, name) >= 0)
            continue;
        if (!*name)
            return FAIL(err, STATUS_FAILED, "input %zu has no name", k);
        if (add_input(im, scope, graph->input[k], &needed, err) != STATUS_OK)
            return error_context(err, "input \"%s\"", name);
    }
    return STATUS_OK;
}

/* Whether a size that was given, "sequence=128", is one of an open dimension. */
static enum status check_dim(struct importer *im, const char *text, struct error *err)
{
    const char *equals = strchr(text, '='), *all = "";
    char *name = arena_printf(&im->scratch, "%.*s", (int)(equals ? equals - text : 0), text);
    if (!equals || equals == text)
        return FAIL(err, STATUS_FAILED, "\"%s\" should be DIMENSION=SIZE", text);
    if (name && open_dims_find(&im->dims, name))
        return STATUS_OK;
    for (size_t k = 0; k < im->dims.count && all; k++)
        all = arena_printf(&im->scratch, "%s%s%s", all, k ? ", " : "", im->dims.list[k].name);
    return FAIL(err, STATUS_FAILED, "no open dimension of an input is called \"%s\"; %s%s", name,
                all && *all ? "open are " : "the file fixes all", all ? all : "");
}

/* What the caller gave must have an effect: a misspelt name would silently change nothing. */
static enum status check_options(struct importer *im, const struct scope *scope, struct error *err)
{
    const struct graph *g = im->g;
    bool batch_fits = im->options->batch <= 0 || im->batch_used;
    for (int k = 0; k < im->options->binding_count; k++) {
        const char *name = im->options->bindings[k].name;
        if (scope_find(scope, name) < 0)
            return FAIL(err, STATUS_FAILED, "the model has no input \"%s\"", name);
        batch_fits = true;
    }
    for (int k = 0; k < im->options->dim_count; k++)
        TRY(check_dim(im, im->options->dims[k], err));
    for (int k = 0; k < g->input_count; k++) {
        const struct shape *shape = &g->values[g->inputs[k]].shape;
        int64_t batch = shape->rank ? shape->dim[0] : 1;
        batch_fits = batch_fits || batch == im->options->batch;
    }
    batch_fits = batch_fits || (g->input_count == 0 && im->options->batch == 1);
    return batch_fits ? STATUS_OK
                      : FAIL(err, STATUS_FAILED, "the file fixes the batch; it cannot be %lld",
                             (long long)im->options->batch);
}

/* ---- outputs ---- */

static bool is_output(const struct graph *g, int value)
{
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == value)
            return true;
    return false;
}

static enum status import_outputs(struct importer *im, const struct scope *scope, struct error *err)
{
    const Onnx__GraphProto *graph = im->model->graph;
    TRY(check_names(im, "output", graph->n_output, graph->output, err));
    for (size_t k = 0; k < graph->n_output; k++) {
        const char *name = text_of(graph->output[k]->name);
        int value;
        if (scope_get(scope, name, &value, err) != STATUS_OK || value == NONE)
            return FAIL(err, STATUS_FAILED, "output \"%s\" is computed by no node", name);
        struct value before = im->g->values[value];
        /* An output needs memory and a name of its own. */
        if (before.kind == VALUE_INPUT || is_output(im->g, value)) {
            value = graph_node(im->g, "Identity", name, INPUTS(value), NO_ATTRS);
            TRY(graph_failed(im->g, err));
            im->g->values[value].count = before.count;
            im->g->values[value].count_axis = before.count_axis;
        }
        graph_rename(im->g, value, name);
        if (strcmp(im->g->values[value].name, name) != 0)
            graph_call(im->g, value, name);
        graph_output(im->g, value);
    }
    return graph_failed(im->g, err);
}

/* ---- the model ---- */

int64_t find_opset(size_t count, Onnx__OperatorSetIdProto *const *imports)
{
    for (size_t k = 0; k < count; k++)
        if (is_onnx_domain(imports[k]->domain))
            return imports[k]->version;
    return 0;
}

static enum status import_graph(struct importer *im, struct error *err)
{
    const Onnx__GraphProto *graph = im->model->graph;
    struct scope scope = {.opset = find_opset(im->model->n_opset_import, im->model->opset_import)};
    if (scope.opset > OPSET_MAX || (scope.opset && scope.opset < OPSET_MIN))
        return UNSUPPORTED(err, "operator set %lld; %d to %d are supported", (long long)scope.opset,
                           OPSET_MIN, OPSET_MAX);
    if (!scope.opset)
        scope.opset = OPSET_MIN; /* only functions and other domains, or a very old file */
    TRY(import_initializers(im, &scope, graph, err));
    TRY(import_inputs(im, &scope, err));
    TRY(check_options(im, &scope, err));
    TRY(import_nodes(im, &scope, graph->n_node, graph->node, err));
    TRY(import_outputs(im, &scope, err));
    if (im->g->node_count)
        graph_compact(im->g);
    choose_fills(im->g);
    return graph_check(im->g, err);
}

static enum status unpack(struct importer *im, const void *bytes, size_t size, struct error *err)
{
    TRY(wire_check_model(bytes, size, err));
    im->memory->model = onnx__model_proto__unpack(NULL, size, bytes);
    im->model = im->memory->model;
    if (!im->model)
        return FAIL(err, STATUS_FAILED, "this is no ONNX model");
    if (!im->model->graph)
        return FAIL(err, STATUS_FAILED, "this is no ONNX model: it has no graph");
    return STATUS_OK;
}

enum status onnx_import_memory(const void *bytes, size_t size, const char *directory,
                               const char *name, const struct onnx_import_options *options,
                               struct graph **out, struct error *err)
{
    static const struct onnx_import_options defaults = {0};
    struct error local = {0};
    struct importer im = {.options = options ? options : &defaults, .file = name};
    *out = NULL;
    im.g = graph_new(name);
    im.memory = onnx_memory_new(directory);
    enum status status =
        im.g && im.memory ? unpack(&im, bytes, size, &local) : FAIL_NO_MEMORY(&local);
    if (im.g && im.memory) { /* values point into the message */
        im.g->owned = im.memory;
        im.g->owned_free = onnx_memory_free;
    }
    if (status == STATUS_OK) {
        open_dims_read(bytes, size, &im.scratch, &im.dims);
        status = import_graph(&im, &local);
    }
    arena_release(&im.scratch);
    if (status == STATUS_OK) {
        *out = im.g;
        return STATUS_OK;
    }
    if (!im.g)
        onnx_memory_free(im.memory);
    graph_free(im.g);
    error_context(&local, "%s", name);
    if (err)
        *err = local;
    return status;
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 2;
    char *directory = malloc(length + 1);
    if (directory) {
        memcpy(directory, slash ? path : "./", length);
        directory[length] = 0;
    }
    return directory;
}

enum status onnx_import(const char *path, const struct onnx_import_options *options,
                        struct graph **out, struct error *err)
{
    struct file file;
    *out = NULL;
    TRY(file_map(path, &file, err));
    char *directory = directory_of(path);
    enum status status =
        directory ? onnx_import_memory(file.data, file.size, directory, path, options, out, err)
                  : FAIL_NO_MEMORY(err);
    free(directory);
    file_unmap(&file);
    return status;
}
