/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reference/fold.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"
#include "engine/reference/reference.h"

enum { CHAIN_MAX = 4096 };

/* A node being folded: what infer, cost and reference are called with. */
struct fold {
    struct graph *g;
    const struct node *node;
    struct infer infer;
    struct ref_tensor *tensors; /* inputs, then outputs */
    struct ref_tensor **slots;
    int slot_count;
    bool shape_only;
};

static enum status check_inputs(const struct fold *f, struct error *err)
{
    for (int k = 0; k < f->node->input_count; k++) {
        int v = f->node->inputs[k];
        if (v == NONE)
            continue;
        const struct value *value = &f->g->values[v];
        if (f->shape_only && value->count != NONE)
            return UNSUPPORTED(err, "the size of \"%s\" is known only at run time", value->name);
        if (!f->shape_only && !value_is_fixed(value))
            return UNSUPPORTED(err, "\"%s\" is known only at run time", value->name);
    }
    return STATUS_OK;
}

static enum status check_limits(const struct fold *f, const struct fold_limits *limits,
                                struct error *err)
{
    int64_t elements = 0;
    struct cost cost = {0};
    for (int k = 0; k < f->node->output_count; k++)
        if (f->node->outputs[k] != NONE)
            elements += shape_count(&f->g->values[f->node->outputs[k]].shape);
    if (elements > limits->elements)
        return UNSUPPORTED(err, "the result has %lld elements", (long long)elements);
    for (int k = 0; !f->shape_only && k < f->node->input_count; k++)
        if (f->node->inputs[k] != NONE)
            cost.elementwise += (double)shape_count(&f->g->values[f->node->inputs[k]].shape);
    if (f->node->op->cost)
        f->node->op->cost(&f->infer, &cost);
    double flops = 2 * cost.macs + cost.elementwise + 10 * cost.transcendentals;
    if (flops > limits->flops)
        return UNSUPPORTED(err, "it costs %.3g FLOPs", flops);
    return STATUS_OK;
}

static bool allocate(struct fold *f, struct arena *arena)
{
    const struct node *node = f->node;
    size_t ins = (size_t)node->input_count + 1, outs = (size_t)node->output_count + 1;
    const struct value **in = arena_array(arena, ins, sizeof(*in));
    struct value **out = arena_array(arena, outs, sizeof(*out));
    f->tensors = arena_array(arena, ins + outs, sizeof(*f->tensors));
    f->slots = arena_array(arena, ins + outs, sizeof(*f->slots));
    if (!in || !out || !f->tensors || !f->slots)
        return false;
    for (int k = 0; k < node->input_count; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &f->g->values[node->inputs[k]];
    for (int k = 0; k < node->output_count; k++)
        out[k] = node->outputs[k] == NONE ? NULL : &f->g->values[node->outputs[k]];
    f->slot_count = node->input_count + node->output_count;
    f->infer = (struct infer){.node = node,
                              .in = in,
                              .out = out,
                              .in_count = node->op_inputs,
                              .out_count = node->output_count};
    return true;
}

static enum status load_input(struct ref_tensor *tensor, const struct value *value,
                              struct error *err)
{
    if (value->data)
        return ref_from_data(tensor, value->dtype, &value->shape, value->data, err);
    void *made = malloc(value_size(value) + 1);
    if (!made)
        return FAIL_NO_MEMORY(err);
    value_materialise(value, made);
    enum status status = ref_from_data(tensor, value->dtype, &value->shape, made, err);
    free(made);
    return status;
}

static enum status load_tensors(struct fold *f, struct error *err)
{
    const int inputs = f->node->input_count;
    for (int k = 0; k < f->slot_count; k++) {
        const struct value *value = k < inputs ? f->infer.in[k] : f->infer.out[k - inputs];
        if (!value)
            continue;
        f->slots[k] = &f->tensors[k];
        if (k >= inputs)
            TRY(ref_alloc(f->slots[k], value->dtype, &value->shape, err));
        else if (!f->shape_only)
            TRY(load_input(f->slots[k], value, err));
        else
            *f->slots[k] = (struct ref_tensor){
                .dtype = value->dtype, .shape = value->shape, .count = shape_count(&value->shape)};
    }
    return STATUS_OK;
}

static enum status compute(const struct fold *f, struct error *err)
{
    const struct node *node = f->node;
    struct ref_tensor **out = f->slots + node->input_count;
    struct ref_call call = {.node = node,
                            .in = (const struct ref_tensor *const *)f->slots,
                            .out = out,
                            .in_count = node->op_inputs,
                            .out_count = node->output_count};
    TRY(node->op->reference(&call, err));
    if (node->post_count)
        ref_posts(node, call.in, out[0]);
    for (int k = 0; k < node->output_count; k++)
        if (out[k])
            ref_wrap(out[k]);
    return STATUS_OK;
}

/* ---- results become constants ---- */

/* Keeps the first `rows` along the axis. */
static void crop(struct ref_tensor *tensor, int axis, int64_t rows)
{
    struct shape *shape = &tensor->shape;
    int64_t inner = shape_span(shape, axis + 1, shape->rank), to = 0;
    int64_t outer = shape_span(shape, 0, axis), full = shape->dim[axis] * inner;
    for (int64_t n = 0; n < outer; n++, to += rows * inner) {
        size_t bytes = (size_t)(rows * inner) * 8;
        if (tensor->f)
            memmove(tensor->f + to, tensor->f + n * full, bytes);
        else
            memmove(tensor->i + to, tensor->i + n * full, bytes);
    }
    shape->dim[axis] = rows;
    tensor->count = outer * rows * inner;
}

static void crop_outputs(const struct fold *f)
{
    const struct op *op = f->node->op;
    struct ref_tensor **out = f->slots + f->node->input_count;
    if (!op->count_output || op->count_output >= f->node->output_count || !out[op->count_output])
        return;
    int64_t rows = out[op->count_output]->i[0];
    for (int k = 0; op->count_axis && k < f->node->output_count; k++) {
        int axis = out[k] ? op->count_axis(&f->infer, k) : -1;
        if (axis >= 0 && rows >= 0 && rows < out[k]->shape.dim[axis])
            crop(out[k], axis, rows);
    }
}

static enum status keep(struct fold *f, struct error *err)
{
    const int inputs = f->node->input_count;
    void *data[64] = {NULL};
    if (f->node->output_count > 64)
        return UNSUPPORTED(err, "it has %d outputs", f->node->output_count);
    for (int k = 0; k < f->node->output_count; k++) {
        const struct ref_tensor *tensor = f->slots[inputs + k];
        if (!tensor)
            continue;
        data[k] = arena_array(&f->g->arena, (size_t)tensor->count + 1, dtype_size(tensor->dtype));
        if (!data[k])
            return FAIL_NO_MEMORY(err);
        ref_to_data(tensor, data[k]);
    }
    for (int k = 0; k < f->node->output_count; k++) {
        struct value *value = f->infer.out[k];
        if (!value)
            continue;
        value->kind = VALUE_CONST;
        value->shape = f->slots[inputs + k]->shape;
        value->data = data[k];
        value->producer = value->count = NONE;
        value->fill = (struct fill){0};
    }
    return STATUS_OK;
}

static enum status fold(struct fold *f, const struct fold_limits *limits, struct error *err)
{
    struct arena arena = {0};
    enum status status = allocate(f, &arena) ? STATUS_OK : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        status = check_limits(f, limits, err);
    if (status == STATUS_OK)
        status = load_tensors(f, err);
    if (status == STATUS_OK)
        status = compute(f, err);
    if (status == STATUS_OK) {
        crop_outputs(f);
        status = keep(f, err);
    }
    for (int k = 0; f->tensors && k < f->slot_count; k++)
        ref_release(&f->tensors[k]);
    arena_release(&arena);
    return status;
}

enum status fold_node(struct graph *g, int n, const struct fold_limits *limits, struct error *err)
{
    struct fold f = {
        .g = g, .node = &g->nodes[n], .shape_only = g->nodes[n].op->reads == READS_SHAPE};
    if (f.node->op->random)
        return UNSUPPORTED(err, "%s is random", f.node->op->name);
    TRY(check_inputs(&f, err));
    TRY(fold(&f, limits, err));
    g->nodes[n].dead = true;
    return STATUS_OK;
}

static enum status fold_chain(struct graph *g, int value, const struct fold_limits *limits,
                              int depth, struct error *err)
{
    int producer = g->values[value].producer;
    if (value_is_fixed(&g->values[value]))
        return STATUS_OK;
    if (producer == NONE)
        return UNSUPPORTED(err, "\"%s\" is known only at run time", g->values[value].name);
    if (depth == CHAIN_MAX)
        return UNSUPPORTED(err, "a chain of more than %d nodes", CHAIN_MAX);
    const struct node *node = &g->nodes[producer];
    for (int k = 0; node->op->reads != READS_SHAPE && k < node->input_count; k++)
        if (node->inputs[k] != NONE)
            TRY(fold_chain(g, node->inputs[k], limits, depth + 1, err));
    return fold_node(g, producer, limits, err);
}

enum status fold_value(struct graph *g, int value, const struct fold_limits *limits,
                       struct error *err)
{
    return fold_chain(g, value, limits, 0, err);
}
