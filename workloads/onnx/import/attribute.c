/* SPDX-License-Identifier: Apache-2.0
 *
 * AttributeProto to struct attr. Files older than IR 2 may leave the type out: then the field that
 * is filled says it. */
#include <stdlib.h>
#include <string.h>

#include "workloads/onnx/import/import.h"

static int type_of(const Onnx__AttributeProto *from)
{
    if (from->has_type && from->type)
        return (int)from->type;
    return from->has_i       ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : from->has_f     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : from->has_s     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : from->t         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
           : from->n_floats  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : from->n_strings ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                             : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

/* Bytes of the file as text; a zero byte inside would hide what follows. */
static enum status read_string(struct importer *im, const ProtobufCBinaryData *bytes,
                               const char **text, struct error *err)
{
    if (bytes->len && memchr(bytes->data, 0, bytes->len))
        return FAIL(err, STATUS_FAILED, "a string with a zero byte in it");
    char *copy = arena_alloc(&im->scratch, bytes->len + 1);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    if (bytes->len)
        memcpy(copy, bytes->data, bytes->len);
    *text = copy;
    return STATUS_OK;
}

static enum status read_strings(struct importer *im, const Onnx__AttributeProto *from,
                                struct attr *attr, struct error *err)
{
    const char **strings = arena_array(&im->scratch, from->n_strings + 1, sizeof(*strings));
    if (!strings)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < from->n_strings; k++)
        TRY(read_string(im, &from->strings[k], &strings[k], err));
    attr->kind = ATTR_STRINGS;
    attr->count = (int)from->n_strings;
    attr->strings = strings;
    return STATUS_OK;
}

static enum status read_floats(struct importer *im, const Onnx__AttributeProto *from,
                               struct attr *attr, struct error *err)
{
    double *floats = arena_array(&im->scratch, from->n_floats + 1, sizeof(*floats));
    if (!floats)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < from->n_floats; k++)
        floats[k] = (double)from->floats[k];
    attr->kind = ATTR_FLOATS;
    attr->count = (int)from->n_floats;
    attr->floats = floats;
    return STATUS_OK;
}

static enum status read_ints(struct importer *im, const Onnx__AttributeProto *from,
                             struct attr *attr, struct error *err)
{
    /* A copy, because an empty list has no address of its own. */
    int64_t *ints = arena_array(&im->scratch, from->n_ints + 1, sizeof(*ints));
    if (!ints)
        return FAIL_NO_MEMORY(err);
    if (from->n_ints)
        memcpy(ints, from->ints, from->n_ints * sizeof(*ints));
    attr->kind = ATTR_INTS;
    attr->count = (int)from->n_ints;
    attr->ints = ints;
    return STATUS_OK;
}

static enum status read_value(struct importer *im, const Onnx__AttributeProto *from,
                              struct attr *attr, struct error *err)
{
    enum { COUNT_MAX = 1 << 20 };
    if (from->n_ints > COUNT_MAX || from->n_floats > COUNT_MAX || from->n_strings > COUNT_MAX)
        return UNSUPPORTED(err, "more than %d elements", COUNT_MAX);
    switch (type_of(from)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        attr->kind = ATTR_INT;
        attr->i = from->i;
        return STATUS_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        attr->kind = ATTR_FLOAT;
        attr->f = (double)from->f;
        return STATUS_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        attr->kind = ATTR_STRING;
        return read_string(im, &from->s, &attr->s, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        attr->kind = ATTR_TENSOR;
        return from->t ? onnx_tensor_read(im->memory, from->t, &attr->desc, &attr->data, err)
                       : FAIL(err, STATUS_FAILED, "the tensor is missing");
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        return read_ints(im, from, attr, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        return read_floats(im, from, attr, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        return read_strings(im, from, attr, err);
    default:
        return UNSUPPORTED(err, "attributes of kind %d are not supported", type_of(from));
    }
}

enum status import_attr(struct importer *im, const Onnx__AttributeProto *from, struct attr *attr,
                        struct error *err)
{
    *attr = (struct attr){.name = text_of(from->name)};
    if (read_value(im, from, attr, err) != STATUS_OK)
        return error_context(err, "attribute \"%s\"", attr->name);
    return STATUS_OK;
}

struct attr *draft_attr(struct draft *d, const char *name)
{
    for (int k = 0; k < d->attr_count; k++)
        if (strcmp(d->attrs[k].name, name) == 0)
            return &d->attrs[k];
    return NULL;
}

void draft_add_attr(struct draft *d, struct attr attr)
{
    d->attrs[d->attr_count++] = attr;
}

void draft_drop_attr(struct draft *d, const char *name)
{
    struct attr *attr = draft_attr(d, name);
    if (attr)
        *attr = d->attrs[--d->attr_count];
}
