/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorProto to desc and contents, without copying where the file's form is ours. */
#ifndef WORKLOADS_ONNX_TENSOR_H
#define WORKLOADS_ONNX_TENSOR_H

#include "base/arena.h"
#include "base/error.h"
#include "base/system/file.h"
#include "engine/graph/tensor.h"
#include "onnx.pb-c.h"

/* What is larger is taken for an error, so that no product of two sizes overflows. */
#define ONNX_SIZE_MAX     ((int64_t)1 << 31)
#define ONNX_ELEMENTS_MAX ((int64_t)1 << 36)

struct external_file {
    const char *location; /* as written in the tensor */
    struct file file;
    struct external_file *next;
};

struct kept_attribute {
    Onnx__AttributeProto *attribute;
    struct kept_attribute *next;
};

/* What tensors of a graph point into: lives as long as the graph (graph->owned). */
struct onnx_memory {
    struct arena arena;
    Onnx__ModelProto *model;
    const char *directory; /* of external data; NULL: there may be none */
    struct external_file *files;
    struct kept_attribute *attributes; /* unpacked apart from the model */
};

struct onnx_memory *onnx_memory_new(const char *directory); /* NULL: out of memory */
void onnx_memory_free(void *memory);
/* Takes the attribute over, also when it fails. */
enum status onnx_memory_keep(struct onnx_memory *memory, Onnx__AttributeProto *attribute,
                             struct error *err);

/* false when a dimension is negative or the number of elements is not sensible. */
bool onnx_shape_sane(const struct shape *shape);
/* desc is plain; *data stays valid as long as memory and tensor do. */
enum status onnx_tensor_read(struct onnx_memory *memory, const Onnx__TensorProto *tensor,
                             struct desc *desc, const void **data, struct error *err);

#endif
