/* SPDX-License-Identifier: Apache-2.0
 *
 * The file is written front to back with one weight in memory at a time: the graph message is
 * packed without its initialisers, whose sizes are known and added to the length in front of it. */
#include "workloads/onnx/export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/build_info.h"
#include "base/numbers/integers.h"
#include "base/system/output.h"
#include "engine/graph/op.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/onnx.h"

enum {
    FIELD_GRAPH = 7 << 3 | 2,       /* of the model */
    FIELD_INITIALIZER = 5 << 3 | 2, /* of the graph */
    FIELD_RAW_DATA = 9 << 3 | 2,    /* of a tensor */
    EXTERNAL_MIN = 1024,
    ALIGN_EXTERNAL = 4096, /* so that the data can be mapped */
    INLINE_MAX = 1 << 30   /* messages end at 2 GiB */
};

/* ---- weights ---- */

static size_t tensor_bytes(const struct export_tensor *tensor)
{
    return (size_t)shape_count(&tensor->desc.shape) * dtype_size(tensor->desc.dtype);
}

static enum status add_weights(struct exporter *x, struct error *err)
{
    const struct graph *g = x->g;
    for (int v = 0; v < g->value_count; v++) {
        const struct value *value = &g->values[v];
        if (!x->used[v] || !value_is_fixed(value))
            continue;
        x->tensors = arena_grow(&x->arena, x->tensors, &x->tensor_cap, x->tensor_count + 1,
                                sizeof(*x->tensors));
        if (!x->tensors)
            return FAIL_NO_MEMORY(err);
        x->tensors[x->tensor_count++] =
            (struct export_tensor){.name = value->name,
                                   .value = value,
                                   .desc = desc_dense(value->dtype, &value->shape, LAYOUT_PLAIN)};
    }
    return STATUS_OK;
}

/* ---- inputs and outputs ---- */

static Onnx__ValueInfoProto *value_info(struct exporter *x, int v)
{
    struct arena *a = &x->arena;
    const struct value *value = &x->g->values[v];
    size_t rank = (size_t)value->shape.rank;
    Onnx__ValueInfoProto *info = arena_alloc(a, sizeof(*info));
    Onnx__TypeProto *type = arena_alloc(a, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = arena_alloc(a, sizeof(*tensor));
    Onnx__TensorShapeProto *shape = arena_alloc(a, sizeof(*shape));
    Onnx__TensorShapeProto__Dimension *dims = arena_array(a, rank + 1, sizeof(*dims));
    Onnx__TensorShapeProto__Dimension **list = arena_array(a, rank + 1, sizeof(*list));
    if (!info || !type || !tensor || !shape || !dims || !list)
        return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    for (size_t k = 0; k < rank; k++) {
        onnx__tensor_shape_proto__dimension__init(&dims[k]);
        list[k] = &dims[k];
        if (value->count != NONE && value->count_axis == (int)k)
            continue; /* known only at run time: neither a number nor a symbol */
        dims[k].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[k].dim_value = value->shape.dim[k];
    }
    shape->n_dim = rank;
    shape->dim = list;
    tensor->has_elem_type = true;
    tensor->elem_type = dtype_to_onnx(value->dtype);
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = arena_strdup(a, value->name);
    info->type = type;
    return info->name ? info : NULL;
}

static Onnx__ValueInfoProto **value_infos(struct exporter *x, const int *values, int count)
{
    Onnx__ValueInfoProto **list = arena_array(&x->arena, (size_t)count + 1, sizeof(*list));
    if (list)
        for (int k = 0; k < count; k++)
            if (!(list[k] = value_info(x, values[k])))
                return NULL;
    return list;
}

enum status export_graph(struct exporter *x, int formal, Onnx__GraphProto *graph, struct error *err)
{
    const struct graph *g = x->g;
    x->used = arena_array(&x->arena, (size_t)g->value_count + 1, sizeof(*x->used));
    if (!x->used)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < g->output_count; k++)
        x->used[g->outputs[k]] = true;
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead && export_node(x, &g->nodes[n], err) != STATUS_OK)
            return error_context(err, "node \"%s\" (%s)", g->nodes[n].name, g->nodes[n].op->name);
    TRY(add_weights(x, err));
    onnx__graph_proto__init(graph);
    graph->name = arena_strdup(&x->arena, g->name);
    graph->n_node = x->node_count;
    graph->node = x->nodes;
    graph->n_input = (size_t)formal;
    graph->input = value_infos(x, g->inputs, formal);
    graph->n_output = (size_t)g->output_count;
    graph->output = value_infos(x, g->outputs, g->output_count);
    return graph->name && graph->input && graph->output ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- writing ---- */

struct model_output {
    struct output model_file, data_file;
    FILE *model, *data; /* their streams; data: NULL when weights are inside the model */
    const char *path, *location;
    bool failed;
};

static void put(struct model_output *out, const void *bytes, size_t size)
{
    if (size && fwrite(bytes, 1, size, out->model) != size)
        out->failed = true;
}

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (value >>= 7)
        bytes++;
    return bytes;
}

static void put_varint(struct model_output *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        count++;
    } while (value >>= 7);
    put(out, bytes, count);
}

static enum status put_message(struct model_output *out, const ProtobufCMessage *message,
                               struct error *err)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return FAIL_NO_MEMORY(err);
    protobuf_c_message_pack(message, bytes);
    put(out, bytes, size);
    free(bytes);
    return STATUS_OK;
}

/* A tensor message with everything but its contents. */
struct head {
    Onnx__TensorProto tensor;
    Onnx__StringStringEntryProto entries[3], *list[3];
    char offset[24], length[24];
    char location[512];
};

/* Small tensors stay in the model: readers look into shapes and axes before they load data. */
static bool is_external(const struct model_output *out, const struct export_tensor *tensor)
{
    return out->location && tensor_bytes(tensor) >= EXTERNAL_MIN;
}

static void head_init(struct head *h, const struct model_output *out,
                      const struct export_tensor *from)
{
    onnx__tensor_proto__init(&h->tensor);
    h->tensor.name = (char *)(uintptr_t)from->name; /* packing does not write */
    h->tensor.n_dims = (size_t)from->desc.shape.rank;
    h->tensor.dims = (int64_t *)(uintptr_t)from->desc.shape.dim;
    h->tensor.has_data_type = true;
    h->tensor.data_type = dtype_to_onnx(from->desc.dtype);
    if (!is_external(out, from))
        return;
    snprintf(h->location, sizeof(h->location), "%s", out->location);
    snprintf(h->offset, sizeof(h->offset), "%lld", (long long)from->offset);
    snprintf(h->length, sizeof(h->length), "%zu", tensor_bytes(from));
    static const char *const keys[3] = {"location", "offset", "length"};
    char *values[3] = {h->location, h->offset, h->length};
    for (int k = 0; k < 3; k++) {
        onnx__string_string_entry_proto__init(&h->entries[k]);
        h->entries[k].key = (char *)(uintptr_t)keys[k];
        h->entries[k].value = values[k];
        h->list[k] = &h->entries[k];
    }
    h->tensor.n_external_data = 3;
    h->tensor.external_data = h->list;
    h->tensor.has_data_location = true;
    h->tensor.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static size_t message_bytes(const struct model_output *out, const struct export_tensor *tensor)
{
    struct head head;
    head_init(&head, out, tensor);
    size_t bytes = onnx__tensor_proto__get_packed_size(&head.tensor);
    if (!is_external(out, tensor))
        bytes += 1 + varint_bytes(tensor_bytes(tensor)) + tensor_bytes(tensor);
    return bytes;
}

static enum status put_contents(FILE *stream, struct model_output *out,
                                const struct export_tensor *tensor, struct error *err)
{
    size_t bytes = tensor_bytes(tensor);
    const void *data = tensor->value ? tensor->value->data : tensor->data;
    void *made = data ? NULL : malloc(bytes + 1);
    if (!data && !made)
        return FAIL_NO_MEMORY(err);
    if (made)
        value_materialise(tensor->value, made);
    if (fwrite(data ? data : made, 1, bytes, stream) != bytes)
        out->failed = true;
    free(made);
    return STATUS_OK;
}

static enum status put_tensor(struct model_output *out, const struct export_tensor *tensor,
                              struct error *err)
{
    struct head head;
    head_init(&head, out, tensor);
    put_varint(out, FIELD_INITIALIZER);
    put_varint(out, message_bytes(out, tensor));
    TRY(put_message(out, &head.tensor.base, err));
    if (is_external(out, tensor)) {
        if (fseek(out->data, (long)tensor->offset, SEEK_SET) != 0)
            out->failed = true;
        return put_contents(out->data, out, tensor, err);
    }
    put_varint(out, FIELD_RAW_DATA);
    put_varint(out, tensor_bytes(tensor));
    return put_contents(out->model, out, tensor, err);
}

static enum status put_model(struct model_output *out, struct exporter *x, Onnx__GraphProto *graph,
                             struct error *err)
{
    char producer[] = "ridge", domain[] = "", version[64];
    char ours[] = EXPORT_DOMAIN, microsofts[] = "com.microsoft";
    Onnx__OperatorSetIdProto opset, own, microsoft, *opsets[3] = {&opset};
    Onnx__ModelProto model;
    onnx__model_proto__init(&model);
    onnx__operator_set_id_proto__init(&opset);
    snprintf(version, sizeof(version), "%s", build_info.version);
    opset.domain = domain;
    opset.has_version = true;
    opset.version = x->f8 ? EXPORT_OPSET_F8 : EXPORT_OPSET;
    own = microsoft = opset;
    own.domain = ours;
    microsoft.domain = microsofts;
    own.version = microsoft.version = 1;
    model.has_ir_version = true;
    model.ir_version = x->f8 ? EXPORT_IR_F8 : EXPORT_IR;
    model.producer_name = producer;
    model.producer_version = version;
    model.n_opset_import = 1;
    if (x->own)
        opsets[model.n_opset_import++] = &own;
    if (x->microsoft)
        opsets[model.n_opset_import++] = &microsoft;
    model.opset_import = opsets;
    TRY(put_message(out, &model.base, err));
    size_t length = onnx__graph_proto__get_packed_size(graph);
    for (size_t k = 0; k < x->tensor_count; k++) {
        size_t bytes = message_bytes(out, &x->tensors[k]);
        length += 1 + varint_bytes(bytes) + bytes;
    }
    put_varint(out, FIELD_GRAPH);
    put_varint(out, length);
    TRY(put_message(out, &graph->base, err));
    for (size_t k = 0; k < x->tensor_count; k++)
        TRY(put_tensor(out, &x->tensors[k], err));
    return STATUS_OK;
}

/* ---- files ---- */

static void place_external(struct exporter *x)
{
    int64_t at = 0;
    for (size_t k = 0; k < x->tensor_count; k++) {
        if (tensor_bytes(&x->tensors[k]) < EXTERNAL_MIN)
            continue;
        x->tensors[k].offset = at;
        at += (int64_t)tensor_bytes(&x->tensors[k]);
        at = round_up(at, ALIGN_EXTERNAL);
    }
}

static enum status open_output(struct exporter *x, struct model_output *out, const char *path,
                               bool external, struct error *err)
{
    size_t total = 0;
    out->path = path;
    for (size_t k = 0; k < x->tensor_count; k++)
        total += tensor_bytes(&x->tensors[k]);
    TRY(output_open(&out->model_file, path, OUTPUT_PRECIOUS, err));
    out->model = out->model_file.stream;
    if (!external && total <= INLINE_MAX)
        return STATUS_OK;
    char *data_path = arena_printf(&x->arena, "%s.data", path);
    if (!data_path)
        return FAIL_NO_MEMORY(err);
    const char *slash = strrchr(data_path, '/');
    out->location = slash ? slash + 1 : data_path;
    place_external(x);
    TRY(output_open(&out->data_file, data_path, OUTPUT_PRECIOUS, err));
    out->data = out->data_file.stream;
    return STATUS_OK;
}

static enum status close_output(struct model_output *out, enum status status, struct error *err)
{
    if (status == STATUS_OK && out->failed)
        status = FAIL(err, STATUS_FAILED, "%s: cannot be written (is the disk full?)", out->path);
    if (status == STATUS_OK)
        status = output_flush(&out->model_file, err); /* or the old model would have new data */
    status = output_close(&out->data_file, status, err);
    return output_close(&out->model_file, status, err);
}

enum status onnx_export(const struct graph *g, const char *path,
                        const struct onnx_export_options *options, struct error *err)
{
    struct exporter x = {.g = g, .own = options && options->own};
    struct model_output out = {.path = path};
    Onnx__GraphProto graph;
    for (int v = 0; v < g->value_count; v++)
        x.f8 = x.f8 || g->values[v].dtype == DTYPE_F8E4M3;
    enum status status = export_graph(&x, g->input_count, &graph, err);
    if (status == STATUS_OK)
        status = open_output(&x, &out, path, options && options->external, err);
    if (status == STATUS_OK)
        status = put_model(&out, &x, &graph, err);
    status = close_output(&out, status, err);
    for (size_t k = 0; k < x.inner_count; k++)
        graph_free(x.inner[k]);
    arena_release(&x.arena);
    return status;
}
