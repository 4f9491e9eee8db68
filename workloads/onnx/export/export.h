/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the exporter: export.c writes the file, export_node.c says how each node stands in
 * it, decompose.c what becomes several nodes. */
#ifndef WORKLOADS_ONNX_EXPORT_EXPORT_H
#define WORKLOADS_ONNX_EXPORT_EXPORT_H

#include "engine/graph/graph.h"
#include "onnx.pb-c.h"

/* Of operators that Ridge alone has. */
#define EXPORT_DOMAIN "ridge"

/* Of a graph with f8 the versions that know it. */
enum { EXPORT_OPSET = 17, EXPORT_IR = 8, EXPORT_OPSET_F8 = 19, EXPORT_IR_F8 = 9 };

/* A tensor of the file: a value of the graph, or made for the file. */
struct export_tensor {
    const char *name;
    struct desc desc;
    const struct value *value; /* NULL: data */
    const void *data;
    int64_t offset; /* in the external file */
};

struct exporter {
    const struct graph *g;
    struct arena arena;
    Onnx__NodeProto **nodes;
    size_t node_count, node_cap;
    struct export_tensor *tensors;
    size_t tensor_count, tensor_cap;
    bool *used;           /* per value of g: some node of the file reads it */
    bool f8;              /* some value of g is */
    bool own;             /* struct onnx_export_options */
    bool microsoft;       /* operators of com.microsoft were written */
    struct graph **inner; /* graphs made for the file, see inner.h */
    size_t inner_count, inner_cap;
};

/* One node on its way into the file. */
struct form {
    struct exporter *x;
    const struct node *node;
    const char **inputs, **outputs; /* names; "" is absent */
    int input_count, output_count;
    struct attr *attrs; /* with room for FORM_SLACK more */
    int attr_count;
    Onnx__GraphProto *body; /* of a loop; NULL: none */
};

enum { FORM_SLACK = 4 };

/* All nodes, weights, and as inputs the first `formal` ones of the graph. */
enum status export_graph(struct exporter *x, int formal, Onnx__GraphProto *graph,
                         struct error *err);
enum status export_node(struct exporter *x, const struct node *node, struct error *err);
/* Adds what the form says as a node of the operator. */
enum status export_form(const struct form *form, const char *op, struct error *err);
/* Adds a tensor and returns its name; NULL: out of memory. */
const char *export_const(struct exporter *x, const char *name, enum dtype dtype,
                         const struct shape *shape, const void *data);
const char *export_i64(struct exporter *x, const char *name, int count, const int64_t *data);

/* Operators that become several: UNSUPPORTED when this is none of them. */
enum status export_decomposed(const struct form *form, bool *done, struct error *err);

#endif
