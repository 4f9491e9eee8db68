/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/ops/lib/ holds what operators share with each other and with kernels: windows,
 * axes, products, moves, elementwise expressions. It computes no graph, and plug-ins link it.
 *
 * What a node is given, wherever it comes from: shape inference (values of the graph), the
 * reference (its tensors) or a kernel query (descs). A rule written against op_args, such as where
 * a Slice starts, is written once and holds in all three places.
 */
#ifndef ENGINE_OPS_LIB_OP_ARGS_H
#define ENGINE_OPS_LIB_OP_ARGS_H

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"

enum { LIST_MAX = 256 };

/* Integers of an attribute or of an input; count -1: given by neither. */
struct int_list {
    int count;
    int64_t at[LIST_MAX];
};

struct op_args {
    const struct node *node;
    int in_count, out_count; /* the operator's own, without operands of posts */
    /* One of the three. */
    const struct infer *infer;
    const struct ref_call *ref;
    const struct kernel_query *query;
};

struct op_args args_of_infer(const struct infer *c);
struct op_args args_of_ref(const struct ref_call *call);
struct op_args args_of_query(const struct kernel_query *q);

/* NULL: absent. Shapes of outputs exist in inference only once they were set. */
const struct shape *args_in(const struct op_args *a, int i);
const struct shape *args_out(const struct op_args *a, int i);

/* The integers of an input if it is there, else of an attribute (a list or one number), else
 * count -1. input NONE or attr NULL: the operator has no such form. */
enum status args_ints(const struct op_args *a, int input, const char *attr, struct int_list *list,
                      struct error *err);
/* The same for floats; at most max. */
enum status args_floats(const struct op_args *a, int input, const char *attr, double *at, int max,
                        int *count, struct error *err);
/* Axis from the node's attribute, in [0, rank). */
enum status args_axis(const struct op_args *a, const struct shape *shape, int64_t fallback,
                      int *axis, struct error *err);

/* Element type from the number that ONNX files and attributes such as `dtype` use; DTYPE_NONE. */
enum dtype dtype_from_onnx(int64_t number);
int32_t dtype_to_onnx(enum dtype dtype);

#endif
