/* SPDX-License-Identifier: Apache-2.0
 *
 * Between ONNX files and graphs.
 *
 * Import reads opsets 1 to 17, and newer ones where an operator means the same. Differences of old
 * versions are translated into what engine/ops understands (translate.c), constant subgraphs are
 * computed (engine/reference/fold.h), If, Loop, Scan and local functions are inlined (control.c,
 * function.c). What is left has static shapes, or it is refused with the node and the reason.
 *
 * Export writes opset 17, only operators of the standard; what ridge adds is decomposed.
 *
 * Checked by tests/conformance (the node tests of ONNX) and tests/fuzz/fuzz_onnx.c.
 */
#ifndef WORKLOADS_ONNX_ONNX_H
#define WORKLOADS_ONNX_ONNX_H

#include "engine/graph/graph.h"

/* What the caller knows about one input of the file. */
struct onnx_binding {
    const char *name;
    struct desc desc; /* plain; takes the place of the shape in the file */
    const void *data; /* row-major contents; NULL: only the shape is known. Copied when used */
    bool constant;    /* the input becomes a constant. Else that happens only where contents decide
                         a shape or a branch: such an input then is no input of the graph */
};

struct onnx_import_options {
    int64_t batch;           /* symbolic first dimensions; 0: 1 */
    const char *const *dims; /* other symbolic dimensions: "sequence=128" */
    int dim_count;
    const struct onnx_binding *bindings;
    int binding_count;
};

/* External data is looked for beside the file. */
enum status onnx_import(const char *path, const struct onnx_import_options *options,
                        struct graph **out, struct error *err);
/* name: for messages. directory: of external data; NULL: there may be none. bytes may go after the
 * call. */
enum status onnx_import_memory(const void *bytes, size_t size, const char *directory,
                               const char *name, const struct onnx_import_options *options,
                               struct graph **out, struct error *err);

/* One serialised TensorProto, as in the .pb files of test sets. *data: malloc'd. *tensor_name (may
 * be NULL): malloc'd, the name it carries or "". UNSUPPORTED for element types ridge has not. */
enum status onnx_tensor_parse(const void *bytes, size_t size, struct desc *desc, void **data,
                              char **tensor_name, struct error *err);

/* What a file says about its inputs and outputs; nothing of it is imported. Initialisers that are
 * inputs too are left out. free(interface.ports) frees all. */
struct onnx_port {
    const char *name;
    enum dtype dtype; /* DTYPE_NONE: no tensor, or of a type that ridge has not */
};

struct onnx_interface {
    struct onnx_port *ports; /* inputs, then outputs */
    int input_count, output_count;
    const char *op; /* of the only node; "" when there are more */
};
enum status onnx_interface(const void *bytes, size_t size, struct onnx_interface *interface,
                           struct error *err);

/* Weights are written with their contents (made by their fills if need be), beside the file as
 * PATH.data when they are larger than 1 GiB or `external` says so. Operators of ridge's own that
 * have no form in ONNX are refused, or with `own` stand in the file as nodes of the domain "ridge".
 */
struct onnx_export_options {
    bool external, own;
};
enum status onnx_export(const struct graph *g, const char *path,
                        const struct onnx_export_options *options, struct error *err);

#endif
