/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between DequantizeLinear and QuantizeLinear is done on the bytes where that is the
 * same: elements that only move (Concat, MaxPool, Transpose, Slice ...), whose bytes get the
 * result's scale before they move, and functions of single elements, which are a table of 256. Rows
 * that are looked up in a quantised table are dequantised alone. */
#include <math.h>
#include <stdlib.h>

#include "engine/compile/passes/quantised.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/quantize.h"

enum { NODES_MAX = 16, BYTES = 256 };

/* ---- what moves ---- */

/* How many of its first inputs are elements that it moves, and of which it makes no others. */
static int moved_inputs(const struct node *node)
{
    const struct op *op = node->op;
    if (node->dead || node->post_count || node->output_count != 1)
        return 0;
    if (op == &op_concat)
        return node->input_count;
    return op == &op_max_pool || op == &op_slice || op->alias || op->reorders;
}

/* The bytes of a dequantised tensor in the scale of the result: as they are, or rounded again. */
static int in_scale_of(struct graph *g, const struct node *quantise, const struct quantised *y,
                       int v)
{
    struct quantised x;
    if (quantised_source(g, v, &x) && quantised_alike(g, &x, y))
        return x.value;
    int inputs[3] = {v};
    int count = quantise->op_inputs;
    for (int k = 1; k < count; k++)
        inputs[k] = quantise->inputs[k];
    return graph_node(g, op_quantize_linear.name, NULL, count, inputs, quantise->attr_count,
                      quantise->attrs);
}

static enum status move_bytes(struct graph *g, int n, bool *done, struct error *err)
{
    struct node quantise = g->nodes[n];
    struct quantised x, y;
    int producer = g->values[quantise.inputs[0]].producer;
    *done = false;
    if (producer == NONE || !quantised_result(g, &quantise, &y) ||
        rewrite_only_user(g, quantise.inputs[0]) != n)
        return STATUS_OK;
    struct node node = g->nodes[producer];
    int moved = moved_inputs(&node);
    bool anyway = node.op->alias || node.op->reorders; /* as many elements before as after */
    for (int k = 0; k < moved && !anyway; k++)
        if (!quantised_source(g, node.inputs[k], &x))
            return STATUS_OK;
    int *inputs = moved ? arena_array(&g->arena, (size_t)node.input_count, sizeof(*inputs)) : NULL;
    if (!inputs)
        return moved ? FAIL_NO_MEMORY(err) : STATUS_OK;
    g->phase = node.phase;
    for (int k = 0; k < node.input_count; k++)
        inputs[k] = k < moved ? in_scale_of(g, &quantise, &y, node.inputs[k]) : node.inputs[k];
    int fresh = graph_node(g, node.op->name, node.name, node.input_count, inputs, node.attr_count,
                           node.attrs);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, y.value, fresh);
    g->nodes[n].dead = true;
    *done = true;
    return STATUS_OK;
}

/* What dequantises like `node`, but another value. */
static int dequantise_like(struct graph *g, const struct node *node, int value)
{
    int inputs[3] = {value};
    for (int k = 1; k < node->op_inputs; k++)
        inputs[k] = node->inputs[k];
    return graph_node(g, op_dequantize_linear.name, NULL, node->op_inputs, inputs, NO_ATTRS);
}

/* A part of a dequantised tensor that Split cuts off, and that is rounded -> its bytes are cut off
 * by a Slice, and then dequantised. */
static enum status split_bytes(struct graph *g, int n, struct error *err)
{
    struct quantised x;
    const struct value *part = &g->values[g->nodes[n].inputs[0]];
    const struct node *found = part->producer == NONE ? NULL : &g->nodes[part->producer];
    if (!found || found->op != &op_split || !quantised_source(g, found->inputs[0], &x))
        return STATUS_OK;
    struct node split = *found,
                whole = *rewrite_producer(g, split.inputs[0], &op_dequantize_linear);
    int64_t axis = shape_axis(&part->shape, node_int(&split, "axis", 0)), first = 0;
    for (int k = 0; k < part->producer_out; k++)
        first += g->values[split.outputs[k]].shape.dim[axis];
    int64_t end = first + part->shape.dim[axis];
    g->phase = split.phase;
    int bytes = graph_node(g, op_slice.name, NULL,
                           INPUTS(x.value, graph_const_i64(g, 1, &first),
                                  graph_const_i64(g, 1, &end), graph_const_i64(g, 1, &axis)),
                           NO_ATTRS);
    int fresh = dequantise_like(g, &whole, bytes);
    if (g->failed)
        return graph_check(g, err);
    g->nodes[n].inputs[0] = fresh;
    return STATUS_OK;
}

/* Gather of a dequantised table -> its bytes are gathered. */
static enum status gather_bytes(struct graph *g, int n, struct error *err)
{
    struct node node = g->nodes[n];
    struct quantised table;
    if (node.post_count || !quantised_source(g, node.inputs[0], &table))
        return STATUS_OK;
    struct node whole = *rewrite_producer(g, node.inputs[0], &op_dequantize_linear);
    g->phase = node.phase;
    int bytes = graph_node(g, node.op->name, node.name, INPUTS(table.value, node.inputs[1]),
                           node.attr_count, node.attrs);
    int fresh = dequantise_like(g, &whole, bytes);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, node.outputs[0], fresh);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

/* ---- functions ---- */

/* Nodes from a QuantizeLinear upwards, each of which bends the single elements of the next. */
struct way {
    const struct node *nodes[NODES_MAX];
    int operands[NODES_MAX]; /* which input of it comes from above */
    int count;
    struct quantised x, y;
};

/* The only input of an elementwise node that is no known number; NONE: there is another one. */
static int open_input(const struct graph *g, const struct node *node)
{
    int open = NONE;
    double number;
    for (int k = 0; k < node->input_count; k++) {
        if (node->inputs[k] == NONE || rewrite_scalar(g, node->inputs[k], &number))
            continue;
        if (open != NONE)
            return NONE;
        open = k;
    }
    return open;
}

static bool find_way(const struct graph *g, const struct node *quantise, struct way *way)
{
    struct chain chain;
    int v = quantise->inputs[0];
    way->count = 0;
    if (!quantised_result(g, quantise, &way->y))
        return false;
    while (!quantised_source(g, v, &way->x)) {
        int producer = g->values[v].producer;
        const struct node *node = producer == NONE ? NULL : &g->nodes[producer];
        int open = node && !node->dead && !node->post_count && op_is_expression(node->op)
                       ? open_input(g, node)
                       : NONE;
        if (open == NONE || way->count == NODES_MAX || !rewrite_expression(g, node, &chain) ||
            !shape_equal(&g->values[node->inputs[open]].shape, &g->values[v].shape))
            return false;
        way->nodes[way->count] = node;
        way->operands[way->count++] = open;
        v = node->inputs[open];
    }
    return true;
}

/* The node's value of x, rounded to f32 as kernels do. */
static float value_of(const struct graph *g, const struct node *node, int operand, float x)
{
    struct chain chain;
    double values[CHAIN_INPUTS + CHAIN_STEPS] = {0};
    if (!rewrite_expression(g, node, &chain))
        return (float)NAN;
    for (int k = 0; k < node->input_count; k++)
        if (k != operand && node->inputs[k] != NONE)
            rewrite_scalar(g, node->inputs[k], &values[k]);
    values[operand] = (double)x;
    for (int s = 0; s < chain.count; s++) {
        const struct chain_step *step = &chain.steps[s];
        values[chain.inputs + s] = function_value(step->code, (double)step->p, (double)step->q,
                                                  values[step->a], values[step->b]);
    }
    return (float)values[chain.inputs + chain.count - 1];
}

/* 256 results, in the order of the unsigned bytes of x; malloc'd. */
static signed char *make_table(const struct graph *g, const struct way *way)
{
    signed char *table = malloc(BYTES);
    bool is_signed = g->values[way->x.value].dtype == DTYPE_I8;
    enum dtype to = g->values[way->y.value].dtype;
    for (int b = 0; table && b < BYTES; b++) {
        int64_t code = is_signed ? (int8_t)b : b;
        float x = (float)(code - way->x.zero) * (float)way->x.scale;
        for (int k = way->count - 1; k >= 0; k--)
            x = value_of(g, way->nodes[k], way->operands[k], x);
        table[b] = (signed char)quantize_number(to, (double)x, way->y.scale, (double)way->y.zero);
    }
    return table;
}

static enum status look_up(struct graph *g, int n, struct error *err)
{
    struct way way;
    if (!find_way(g, &g->nodes[n], &way))
        return STATUS_OK;
    g->phase = g->nodes[n].phase;
    int fresh = way.x.value;
    if (way.count || !quantised_alike(g, &way.x, &way.y)) {
        struct shape bytes = shape_of(BYTES);
        signed char *data = make_table(g, &way);
        int table =
            data ? graph_const(g, "table", g->values[way.y.value].dtype, bytes, data) : NONE;
        if (!data)
            return FAIL_NO_MEMORY(err);
        free(data);
        fresh = graph_node(g, op_table_bytes.name, NULL, INPUTS(way.x.value, table), NO_ATTRS);
    }
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, way.y.value, fresh);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

enum status pass_keep_bytes(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) { /* of those that are added, too */
        bool done = false;
        if (!g->nodes[n].dead && g->nodes[n].op == &op_gather)
            TRY(gather_bytes(g, n, err));
        if (g->nodes[n].dead || g->nodes[n].op != &op_quantize_linear)
            continue;
        TRY(split_bytes(g, n, err));
        TRY(move_bytes(g, n, &done, err));
        if (!done)
            TRY(look_up(g, n, err));
    }
    return STATUS_OK;
}
