/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/onnx/tensor.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/onnx.h"
#include "workloads/onnx/wire.h"

enum { ONNX_UINT4 = 21, ONNX_INT4 = 22 }; /* newer than the description that we have */

/* ---- memory ---- */

struct onnx_memory *onnx_memory_new(const char *directory)
{
    struct onnx_memory *memory = calloc(1, sizeof(*memory));
    if (!memory || !directory)
        return memory;
    memory->directory = arena_strdup(&memory->arena, directory);
    if (memory->directory)
        return memory;
    onnx_memory_free(memory);
    return NULL;
}

void onnx_memory_free(void *owned)
{
    struct onnx_memory *memory = owned;
    if (!memory)
        return;
    for (struct external_file *file = memory->files; file; file = file->next)
        file_unmap(&file->file);
    for (struct kept_attribute *kept = memory->attributes; kept; kept = kept->next)
        onnx__attribute_proto__free_unpacked(kept->attribute, NULL);
    if (memory->model)
        onnx__model_proto__free_unpacked(memory->model, NULL);
    arena_release(&memory->arena);
    free(memory);
}

enum status onnx_memory_keep(struct onnx_memory *memory, Onnx__AttributeProto *attribute,
                             struct error *err)
{
    struct kept_attribute *kept = arena_alloc(&memory->arena, sizeof(*kept));
    if (!kept) {
        onnx__attribute_proto__free_unpacked(attribute, NULL);
        return FAIL_NO_MEMORY(err);
    }
    kept->attribute = attribute;
    kept->next = memory->attributes;
    memory->attributes = kept;
    return STATUS_OK;
}

bool onnx_shape_sane(const struct shape *shape)
{
    int64_t count = 1;
    for (int k = 0; k < shape->rank; k++) {
        if (shape->dim[k] < 0 || shape->dim[k] > ONNX_SIZE_MAX)
            return false;
        /* Zeros do not hide the size of the others: products of parts must not overflow either. */
        int64_t dim = shape->dim[k] ? shape->dim[k] : 1;
        if (count > ONNX_ELEMENTS_MAX / dim)
            return false;
        count *= dim;
    }
    return true;
}

/* ---- external data ---- */

static const char *external_value(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t k = 0; k < tensor->n_external_data; k++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[k];
        if (entry->key && entry->value && strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

/* Only files beside the model: a model from elsewhere must not read what it likes. */
static bool is_beside(const char *location)
{
    if (location[0] == '/' || location[0] == 0)
        return false;
    for (const char *at = location; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == 0))
            return false;
    return true;
}

static enum status open_external(struct onnx_memory *memory, const char *location,
                                 const struct file **out, struct error *err)
{
    for (struct external_file *file = memory->files; file; file = file->next) {
        if (strcmp(file->location, location) == 0) {
            *out = &file->file;
            return STATUS_OK;
        }
    }
    if (!memory->directory)
        return UNSUPPORTED(err, "external data \"%s\" in a model that is no file", location);
    struct external_file *made = arena_alloc(&memory->arena, sizeof(*made));
    if (!made)
        return FAIL_NO_MEMORY(err);
    made->location = location;
    if (file_map_beneath(memory->directory, location, &made->file, err) != STATUS_OK)
        return error_context(err, "external data");
    made->next = memory->files;
    memory->files = made;
    *out = &made->file;
    return STATUS_OK;
}

static bool parse_offset(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = text ? strtoull(text, &end, 10) : 0;
    return !text || (*text >= '0' && *text <= '9' && !*end && !errno);
}

static enum status read_external(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                                 size_t bytes, const void **data, struct error *err)
{
    const char *location = external_value(tensor, "location");
    const struct file *file = NULL;
    uint64_t offset, length;
    if (!location || !is_beside(location))
        return FAIL(err, STATUS_FAILED, "external data \"%s\" does not lie beside the model",
                    location ? location : "");
    if (!parse_offset(external_value(tensor, "offset"), &offset) ||
        !parse_offset(external_value(tensor, "length"), &length))
        return FAIL(err, STATUS_FAILED, "external data: offset or length is no number");
    if (external_value(tensor, "length") && length != bytes)
        return FAIL(err, STATUS_FAILED, "external data: %llu bytes where %zu are needed",
                    (unsigned long long)length, bytes);
    TRY(open_external(memory, location, &file, err));
    if (offset > file->size || bytes > file->size - offset)
        return FAIL(err, STATUS_FAILED, "external data: %s is too short for offset %llu", location,
                    (unsigned long long)offset);
    *data = bytes ? (const char *)file->data + offset : "";
    return STATUS_OK;
}

/* ---- typed fields ---- */

/* Elements of a typed field: where they are, how wide, how many. */
struct typed {
    const void *data;
    size_t item_bytes, count;
};

static struct typed typed_field(const Onnx__TensorProto *tensor, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return (struct typed){tensor->float_data, 4, tensor->n_float_data};
    case DTYPE_F64:
        return (struct typed){tensor->double_data, 8, tensor->n_double_data};
    case DTYPE_I64:
        return (struct typed){tensor->int64_data, 8, tensor->n_int64_data};
    case DTYPE_U32:
    case DTYPE_U64:
        return (struct typed){tensor->uint64_data, 8, tensor->n_uint64_data};
    default:
        return (struct typed){tensor->int32_data, 4, tensor->n_int32_data};
    }
}

/* The low bytes of each element: what a C conversion to the narrower integer keeps. f16, bf16
 * and f8 stand in int32_data as their bits. */
static void narrow(const struct typed *from, size_t item_bytes, char *to)
{
    for (size_t k = 0; k < from->count; k++) {
        uint64_t word = from->item_bytes == 8 ? ((const uint64_t *)from->data)[k]
                                              : ((const uint32_t *)from->data)[k];
        uint32_t low = (uint32_t)word;
        uint16_t half = (uint16_t)word;
        uint8_t byte = (uint8_t)word;
        const void *source = item_bytes == 4   ? (const void *)&low
                             : item_bytes == 2 ? (const void *)&half
                                               : (const void *)&byte;
        memcpy(to + k * item_bytes, source, item_bytes);
    }
}

static enum status read_typed(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                              const struct desc *desc, const void **data, struct error *err)
{
    struct typed field = typed_field(tensor, desc->dtype);
    size_t count = (size_t)shape_count(&desc->shape), item = dtype_size(desc->dtype);
    if (field.count != count)
        return FAIL(err, STATUS_FAILED, "%zu elements are given, the shape has %zu", field.count,
                    count);
    if (field.item_bytes == item) {
        *data = count ? field.data : "";
        return STATUS_OK;
    }
    char *copy = arena_alloc(&memory->arena, count * item + 1);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    narrow(&field, item, copy);
    *data = copy;
    return STATUS_OK;
}

/* ---- a tensor ---- */

/* Numbers of 4 bits become bytes here: no operator of this graph computes with them as they are. */
static bool is_nibbles(const Onnx__TensorProto *tensor)
{
    return tensor->data_type == ONNX_UINT4 || tensor->data_type == ONNX_INT4;
}

static enum dtype element_of(const Onnx__TensorProto *tensor)
{
    if (is_nibbles(tensor))
        return tensor->data_type == ONNX_UINT4 ? DTYPE_U8 : DTYPE_I8;
    return dtype_from_onnx(tensor->data_type);
}

static enum status read_desc(const Onnx__TensorProto *tensor, struct desc *desc, struct error *err)
{
    enum dtype dtype = element_of(tensor);
    if (tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return UNSUPPORTED(err, "a tensor of strings; only numbers are supported");
    if (dtype == DTYPE_NONE)
        return UNSUPPORTED(err, "element type %d is not supported", tensor->data_type);
    if (tensor->segment)
        return UNSUPPORTED(err, "a tensor in segments");
    if (tensor->n_dims > RANK_MAX)
        return UNSUPPORTED(err, "rank %zu; at most %d is supported", tensor->n_dims, RANK_MAX);
    struct shape shape = shape_from((int)tensor->n_dims, tensor->dims);
    char text[96];
    if (!onnx_shape_sane(&shape))
        return FAIL(err, STATUS_FAILED, "shape %s makes no sense", shape_text(&shape, text));
    *desc = desc_dense(dtype, &shape, LAYOUT_PLAIN);
    return STATUS_OK;
}

/* Elements are read by their type, so they must lie as the type wants. */
static enum status align(struct onnx_memory *memory, size_t bytes, size_t item, const void **data,
                         struct error *err)
{
    if (!bytes || (uintptr_t)*data % item == 0)
        return STATUS_OK;
    *data = arena_copy(&memory->arena, *data, bytes);
    return *data ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Elements as they lie in the file. */
static enum status read_elements(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                                 const struct desc *desc, const void **data, struct error *err)
{
    size_t item = dtype_size(desc->dtype), bytes = (size_t)shape_count(&desc->shape) * item;
    if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        TRY(read_external(memory, tensor, bytes, data, err));
    } else if (tensor->has_raw_data) {
        if (tensor->raw_data.len != bytes)
            return FAIL(err, STATUS_FAILED, "raw_data has %zu bytes where %zu are needed",
                        tensor->raw_data.len, bytes);
        *data = bytes ? (const void *)tensor->raw_data.data : "";
    } else {
        TRY(read_typed(memory, tensor, desc, data, err));
    }
    return align(memory, bytes, item, data, err);
}

/* Two numbers are a byte, the first in its lower half. */
static enum status read_nibbles(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                                const struct desc *desc, const void **data, struct error *err)
{
    int64_t count = shape_count(&desc->shape);
    struct shape pairs = shape_of((count + 1) / 2);
    struct desc packed = desc_dense(DTYPE_U8, &pairs, LAYOUT_PLAIN);
    const void *bytes;
    TRY(read_elements(memory, tensor, &packed, &bytes, err));
    uint8_t *numbers = arena_alloc(&memory->arena, (size_t)count + 1);
    if (!numbers)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < count; k++) {
        int number = ((const uint8_t *)bytes)[k / 2] >> 4 * (k & 1) & 15;
        numbers[k] = (uint8_t)(desc->dtype == DTYPE_I8 && number > 7 ? number - 16 : number);
    }
    *data = numbers;
    return STATUS_OK;
}

enum status onnx_tensor_read(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                             struct desc *desc, const void **data, struct error *err)
{
    TRY(read_desc(tensor, desc, err));
    if (is_nibbles(tensor))
        return read_nibbles(memory, tensor, desc, data, err);
    return read_elements(memory, tensor, desc, data, err);
}

/* ---- .pb files ---- */

static enum status copy_out(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                            struct desc *desc, void **data, char **name, struct error *err)
{
    const void *contents;
    TRY(onnx_tensor_read(memory, tensor, desc, &contents, err));
    size_t bytes = desc_bytes(desc);
    void *copy = malloc(bytes + 1);
    char *text = name ? strdup(tensor->name ? tensor->name : "") : NULL;
    if (!copy || (name && !text)) {
        free(copy);
        free(text);
        return FAIL_NO_MEMORY(err);
    }
    memcpy(copy, contents, bytes);
    *data = copy;
    if (name)
        *name = text;
    return STATUS_OK;
}

enum status onnx_tensor_parse(const void *bytes, size_t size, struct desc *desc, void **data,
                              char **tensor_name, struct error *err)
{
    TRY(wire_check_tensor(bytes, size, err));
    Onnx__TensorProto *tensor = onnx__tensor_proto__unpack(NULL, size, bytes);
    struct onnx_memory *memory = onnx_memory_new(NULL);
    enum status status = !memory   ? FAIL_NO_MEMORY(err)
                         : !tensor ? FAIL(err, STATUS_FAILED, "no serialised tensor")
                                   : copy_out(memory, tensor, desc, data, tensor_name, err);
    onnx_memory_free(memory);
    if (tensor)
        onnx__tensor_proto__free_unpacked(tensor, NULL);
    return status;
}
