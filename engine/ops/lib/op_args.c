/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_args.h"

#include <string.h>

struct op_args args_of_infer(const struct infer *c)
{
    return (struct op_args){
        .node = c->node, .in_count = c->in_count, .out_count = c->out_count, .infer = c};
}

struct op_args args_of_ref(const struct ref_call *call)
{
    return (struct op_args){
        .node = call->node, .in_count = call->in_count, .out_count = call->out_count, .ref = call};
}

struct op_args args_of_query(const struct kernel_query *q)
{
    int own = q->node->op_inputs < q->in_count ? q->node->op_inputs : q->in_count;
    return (struct op_args){
        .node = q->node, .in_count = own, .out_count = q->out_count, .query = q};
}

const struct shape *args_in(const struct op_args *a, int i)
{
    if (i < 0 || i >= a->in_count)
        return NULL;
    if (a->query)
        return a->query->in[i].dtype == DTYPE_NONE ? NULL : &a->query->in[i].shape;
    if (a->ref)
        return a->ref->in[i] ? &a->ref->in[i]->shape : NULL;
    return a->infer->in[i] ? &a->infer->in[i]->shape : NULL;
}

const struct shape *args_out(const struct op_args *a, int i)
{
    if (i < 0 || i >= a->out_count)
        return NULL;
    if (a->query)
        return a->query->out[i].dtype == DTYPE_NONE ? NULL : &a->query->out[i].shape;
    if (a->ref)
        return a->ref->out[i] ? &a->ref->out[i]->shape : NULL;
    return a->infer->out[i] ? &a->infer->out[i]->shape : NULL;
}

/* Input i of a query as if it were a value of a graph, so that infer_ints can read it. */
static struct value value_of_query(const struct kernel_query *q, int i)
{
    return (struct value){.name = "",
                          .kind = VALUE_CONST,
                          .dtype = q->in[i].dtype,
                          .shape = q->in[i].shape,
                          .data = q->fixed ? q->fixed[i] : NULL};
}

static struct value value_of_ref(const struct ref_tensor *t)
{
    return (struct value){.name = "",
                          .kind = VALUE_CONST,
                          .shape = t->shape,
                          .dtype = t->f ? DTYPE_F64 : DTYPE_I64,
                          .data = t->f ? (const void *)t->f : t->i};
}

/* An inference of one input, whose only purpose is to be read. */
struct reader {
    struct value value;
    const struct value *in[1];
    struct infer infer;
};

static void reader_init(struct reader *r, const struct op_args *a, int input)
{
    if (a->infer) {
        r->in[0] = a->infer->in[input];
    } else {
        r->value = a->ref ? value_of_ref(a->ref->in[input]) : value_of_query(a->query, input);
        r->in[0] = &r->value;
    }
    r->infer = (struct infer){.node = a->node, .in = r->in, .in_count = 1};
}

enum status args_ints(const struct op_args *a, int input, const char *attr, struct int_list *list,
                      struct error *err)
{
    list->count = -1;
    if (args_in(a, input)) {
        struct reader r;
        reader_init(&r, a, input);
        if (infer_ints(&r.infer, 0, list->at, LIST_MAX, &list->count, err) != STATUS_OK)
            return error_context(err, "input %d of %s", input, a->node->op->name);
        return STATUS_OK;
    }
    const struct attr *found = attr ? node_attr(a->node, attr) : NULL;
    if (!found)
        return STATUS_OK;
    if (found->kind == ATTR_INT) {
        list->count = 1;
        list->at[0] = found->i;
        return STATUS_OK;
    }
    if (found->kind != ATTR_INTS || found->count > LIST_MAX)
        return FAIL(err, STATUS_FAILED, "attribute %s of %s must be at most %d integers", attr,
                    a->node->op->name, LIST_MAX);
    list->count = node_ints(a->node, attr, list->at, LIST_MAX);
    return STATUS_OK;
}

enum status args_floats(const struct op_args *a, int input, const char *attr, double *at, int max,
                        int *count, struct error *err)
{
    *count = -1;
    if (args_in(a, input)) {
        struct reader r;
        reader_init(&r, a, input);
        if (infer_floats(&r.infer, 0, at, max, count, err) != STATUS_OK)
            return error_context(err, "input %d of %s", input, a->node->op->name);
        return STATUS_OK;
    }
    const struct attr *found = attr ? node_attr(a->node, attr) : NULL;
    if (!found)
        return STATUS_OK;
    if (found->kind != ATTR_FLOATS || found->count > max)
        return FAIL(err, STATUS_FAILED, "attribute %s of %s must be at most %d floats", attr,
                    a->node->op->name, max);
    *count = found->count;
    memcpy(at, found->floats, (size_t)found->count * sizeof(*at));
    return STATUS_OK;
}

enum status args_axis(const struct op_args *a, const struct shape *shape, int64_t fallback,
                      int *axis, struct error *err)
{
    int64_t given = node_int(a->node, "axis", fallback);
    *axis = shape_axis(shape, given);
    if (*axis < 0)
        return FAIL(err, STATUS_FAILED, "axis %lld of %s is outside a tensor of rank %d",
                    (long long)given, a->node->op->name, shape->rank);
    return STATUS_OK;
}

enum dtype dtype_from_onnx(int64_t number)
{
    static const enum dtype table[] = {
        [1] = DTYPE_F32,  [2] = DTYPE_U8,   [3] = DTYPE_I8,    [4] = DTYPE_U16,    [5] = DTYPE_I16,
        [6] = DTYPE_I32,  [7] = DTYPE_I64,  [9] = DTYPE_BOOL,  [10] = DTYPE_F16,   [11] = DTYPE_F64,
        [12] = DTYPE_U32, [13] = DTYPE_U64, [16] = DTYPE_BF16, [17] = DTYPE_F8E4M3};
    return number >= 0 && number < ARRAY_COUNT(table) ? table[number] : DTYPE_NONE;
}

int32_t dtype_to_onnx(enum dtype dtype)
{
    for (int32_t number = 1; number < 32; number++)
        if (dtype_from_onnx(number) == dtype)
            return number;
    return 0;
}
