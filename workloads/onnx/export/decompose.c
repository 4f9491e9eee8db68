/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that opset 17 has not, written as the operators that they are made of. */
#include <stdio.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "workloads/onnx/export/inner.h"
#include "workloads/onnx/export/parts.h"

enum { NAME_BYTES = 256 };

/* Builds a chain of nodes whose intermediate values are named after the result. */
struct chain {
    const struct form *form;
    int made;
    struct error *err;
    enum status status;
};

static const char *chain_node(struct chain *c, const char *op, const char *a, const char *b)
{
    char text[NAME_BYTES];
    if (c->status != STATUS_OK)
        return "";
    snprintf(text, sizeof(text), "%s:part%d", c->form->outputs[0], ++c->made);
    const char *name = arena_strdup(&c->form->x->arena, text);
    const char *inputs[2] = {a, b};
    struct form f = {.x = c->form->x,
                     .inputs = inputs,
                     .outputs = &name,
                     .output_count = 1,
                     .input_count = b ? 2 : 1};
    c->status = name ? export_form(&f, op, c->err) : FAIL_NO_MEMORY(c->err);
    return name;
}

/* The last node: it has the name of the result. */
static enum status chain_end(struct chain *c, const char *op, const char *a, const char *b)
{
    const char *inputs[2] = {a, b};
    struct form f = {.x = c->form->x,
                     .inputs = inputs,
                     .outputs = c->form->outputs,
                     .output_count = 1,
                     .input_count = b ? 2 : 1};
    return c->status == STATUS_OK ? export_form(&f, op, c->err) : c->status;
}

static const char *chain_number(struct chain *c, double number)
{
    char text[NAME_BYTES];
    const struct value *x = &c->form->x->g->values[c->form->node->inputs[0]];
    struct shape scalar = shape_scalar();
    float single = (float)number, stored = single;
    floats_store(x->dtype == DTYPE_F64 ? DTYPE_F32 : x->dtype, &single, &stored, 1);
    const void *data = x->dtype == DTYPE_F64 ? (const void *)&number : (const void *)&stored;
    snprintf(text, sizeof(text), "%s:part%d", c->form->outputs[0], ++c->made);
    const char *name =
        export_const(c->form->x, arena_strdup(&c->form->x->arena, text), x->dtype, &scalar, data);
    if (!name && c->status == STATUS_OK)
        c->status = FAIL_NO_MEMORY(c->err);
    return name ? name : "";
}

/* 0.5 x (1 + erf(x / sqrt 2)), or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
static enum status gelu(const struct form *f, struct error *err)
{
    struct chain c = {.form = f, .err = err};
    const char *x = f->inputs[0], *inner;
    if (strcmp(node_string(f->node, "approximate", "none"), "tanh") == 0) {
        const char *cube = chain_node(&c, "Mul", chain_node(&c, "Mul", x, x), x);
        cube = chain_node(&c, "Mul", cube, chain_number(&c, 0.044715));
        inner = chain_node(&c, "Mul", chain_node(&c, "Add", x, cube),
                           chain_number(&c, 0.79788456080286535588));
        inner = chain_node(&c, "Tanh", inner, NULL);
    } else {
        inner = chain_node(&c, "Mul", x, chain_number(&c, 0.70710678118654752440));
        inner = chain_node(&c, "Erf", inner, NULL);
    }
    inner = chain_node(&c, "Add", inner, chain_number(&c, 1));
    return chain_end(&c, "Mul", chain_node(&c, "Mul", x, chain_number(&c, 0.5)), inner);
}

/* Rows of the table, then their sum or mean. */
static enum status embedding_bag(const struct form *f, struct error *err)
{
    struct chain c = {.form = f, .err = err};
    static const int64_t axis = 1;
    bool mean = strcmp(node_string(f->node, "mode", "sum"), "mean") == 0;
    const char *rows = chain_node(&c, "Gather", f->inputs[0], f->inputs[1]);
    if (c.status != STATUS_OK)
        return c.status;
    const char *axes = NULL;
    if (!mean) {
        axes = export_i64(f->x, arena_printf(&f->x->arena, "%s:axes", f->outputs[0]), 1, &axis);
        if (!axes)
            return FAIL_NO_MEMORY(err);
    }
    const char *inputs[2] = {rows, axes};
    struct attr attrs[2] = {attr_int("keepdims", 0), attr_ints("axes", 1, &axis)};
    struct form sum = {.x = f->x,
                       .inputs = inputs,
                       .outputs = f->outputs,
                       .output_count = 1,
                       .input_count = mean ? 1 : 2,
                       .attrs = attrs,
                       .attr_count = mean ? 2 : 1};
    return export_form(&sum, mean ? "ReduceMean" : "ReduceSum", err);
}

/* Softmax over several axes as one: flattened to rows and back. */
static enum status flattened(const struct form *f, struct error *err)
{
    struct chain c = {.form = f, .err = err};
    const struct shape *shape = &f->x->g->values[f->node->inputs[0]].shape;
    int axis = shape_axis(shape, node_int(f->node, "axis", 1));
    axis = axis < 0 ? shape->rank : axis;
    int64_t rows[2] = {shape_span(shape, 0, axis), shape_span(shape, axis, shape->rank)};
    struct arena *arena = &f->x->arena;
    const char *flat = export_i64(f->x, arena_printf(arena, "%s:rows", f->outputs[0]), 2, rows);
    const char *whole =
        export_i64(f->x, arena_printf(arena, "%s:shape", f->outputs[0]), shape->rank, shape->dim);
    const char *name = arena_printf(arena, "%s:of_rows", f->outputs[0]);
    if (!flat || !whole || !name)
        return FAIL_NO_MEMORY(err);
    const char *input = chain_node(&c, "Reshape", f->inputs[0], flat);
    struct attr attr = attr_int("axis", 1);
    struct form softmax = {.x = f->x,
                           .inputs = &input,
                           .outputs = &name,
                           .output_count = 1,
                           .input_count = 1,
                           .attrs = &attr,
                           .attr_count = 1};
    TRY(c.status);
    TRY(export_form(&softmax, f->node->op->name, err));
    return chain_end(&c, "Reshape", name, whole);
}

static enum status reorder(const struct form *f, struct error *err)
{
    struct chain c = {.form = f, .err = err};
    return chain_end(&c, op_identity.name, f->inputs[0], NULL);
}

static const struct {
    const struct op *op;
    enum status (*export)(const struct form *f, struct error *err);
} decompositions[] = {
    {&op_attention, export_attention},
    {&op_augru, export_augru},
    {&op_attention_decoder, export_decoder},
    {&op_attention_lstm, export_attention_lstm},
    {&op_ctc_greedy_decoder, export_ctc_greedy_decoder},
    {&op_connected_components, export_connected_components},
    {&op_detection_output, export_detection_output},
    {&op_embedding_bag, embedding_bag},
    {&op_expert_combine, export_expert_combine},
    {&op_expert_sort, export_expert_sort},
    {&op_gelu, gelu},
    {&op_grouped_mat_mul, export_grouped_mat_mul},
    {&op_merge_segments, export_merge_segments},
    {&op_reorder, reorder},
    {&op_rms_normalization, export_rms_normalization},
    {&op_rotary_embedding, export_rotary_embedding},
    {&op_sp_mm, export_spmm},
    {&op_tensor_scatter, export_tensor_scatter},
};

enum status export_decomposed(const struct form *f, bool *done, struct error *err)
{
    const struct op *op = f->node->op;
    *done = true;
    for (int k = 0; k < ARRAY_COUNT(decompositions); k++)
        if (op == decompositions[k].op)
            return decompositions[k].export(f, err);
    if (node_int(f->node, "flatten", 0))
        return flattened(f, err);
    *done = false;
    if (op->domain && strcmp(op->domain, EXPORT_DOMAIN) == 0 && !f->x->own)
        return UNSUPPORTED(err, "operator %s is ridge's own and has no form in ONNX", op->name);
    return STATUS_OK;
}
