/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "engine/graph/op.h"

struct graph *graph_new(const char *name)
{
    struct graph *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->name = arena_strdup(&g->arena, name);
    if (!g->name) {
        graph_free(g);
        return NULL;
    }
    return g;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    if (g->owned_free)
        g->owned_free(g->owned);
    for (int v = 0; v < g->value_count; v++)
        if (g->values[v].data_owned)
            free((void *)(uintptr_t)g->values[v].data);
    arena_release(&g->arena);
    free(g);
}

static int fail(struct graph *g)
{
    g->failed = true;
    return NONE;
}

static int fail_memory(struct graph *g)
{
    FAIL_NO_MEMORY(&g->err);
    return fail(g);
}

/* ---- names: open addressing over value indices, so that unique names cost O(1) ---- */

static size_t name_slot(const struct graph *g, const char *name)
{
    size_t mask = g->name_cap - 1, at = (size_t)hash_fnv1a(name) & mask;
    while (g->name_table[at] && strcmp(g->values[g->name_table[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return at;
}

static bool names_reserve(struct graph *g)
{
    if ((size_t)g->value_count * 2 + 2 < g->name_cap)
        return true;
    size_t cap = g->name_cap ? g->name_cap * 4 : 256;
    int *table = arena_array(&g->arena, cap, sizeof(*table));
    if (!table)
        return false;
    g->name_table = table;
    g->name_cap = cap;
    for (int v = 0; v < g->value_count; v++)
        table[name_slot(g, g->values[v].name)] = v + 1;
    return true;
}

int graph_find_value(const struct graph *g, const char *name)
{
    return g->name_cap ? g->name_table[name_slot(g, name)] - 1 : NONE;
}

int graph_input_index(const struct graph *g, int v)
{
    for (int k = 0; k < g->input_count; k++)
        if (g->inputs[k] == v)
            return k;
    return NONE;
}

int graph_input_named(const struct graph *g, const char *name)
{
    return graph_input_index(g, graph_find_value(g, name));
}

size_t value_size(const struct value *value)
{
    return (size_t)shape_count(&value->shape) * dtype_size(value->dtype);
}

static char *unique_name(struct graph *g, const char *name)
{
    if (graph_find_value(g, name) == NONE)
        return arena_strdup(&g->arena, name);
    for (int k = 1;; k++) {
        char *text = arena_printf(&g->arena, "%s_%d", name, g->value_count + k);
        if (!text || graph_find_value(g, text) == NONE)
            return text;
    }
}

void graph_rename(struct graph *g, int value, const char *name)
{
    if (g->failed || value == NONE || strcmp(g->values[value].name, name) == 0)
        return;
    char *text = unique_name(g, name);
    if (!text) {
        fail_memory(g);
        return;
    }
    g->values[value].name = text;
    memset(g->name_table, 0, g->name_cap * sizeof(*g->name_table));
    for (int v = 0; v < g->value_count; v++)
        g->name_table[name_slot(g, g->values[v].name)] = v + 1;
}

struct called {
    int value;
    const char *name;
    const struct called *next;
};

void graph_call(struct graph *g, int value, const char *name)
{
    struct called *called = arena_alloc(&g->arena, sizeof(*called));
    char *text = arena_strdup(&g->arena, name);
    if (!called || !text) {
        fail_memory(g);
        return;
    }
    *called = (struct called){value, text, g->called};
    g->called = called;
}

const char *graph_called(const struct graph *g, int value)
{
    for (const struct called *called = g->called; called; called = called->next)
        if (called->value == value)
            return called->name;
    return g->values[value].name;
}

/* ---- values ---- */

/* Larger sizes are mistakes or attacks; refusing them keeps products in range. */
static const double elements_max = 0x1p40;

static double elements_of(const struct shape *shape)
{
    double count = 1;
    for (int k = 0; k < shape->rank; k++)
        count *= (double)(shape->dim[k] > 1 ? shape->dim[k] : 1);
    return count;
}

static int add_value(struct graph *g, const char *name, const struct value *value)
{
    if (g->failed)
        return NONE;
    double elements = elements_of(&value->shape);
    if (elements > elements_max) {
        char text[96];
        FAIL(&g->err, STATUS_FAILED,
             "value \"%s\" would have the shape %s and take %.4g GB: too large", name ? name : "",
             shape_text(&value->shape, text), elements * (double)dtype_size(value->dtype) * 1e-9);
        return fail(g);
    }
    struct value *values = arena_grow(&g->arena, g->values, &g->value_cap,
                                      (size_t)g->value_count + 1, sizeof(*values));
    if (!values)
        return fail_memory(g);
    g->values = values;
    char made[64];
    if (!name) {
        snprintf(made, sizeof(made), "v%d", g->value_count);
        name = made;
    }
    if (!names_reserve(g))
        return fail_memory(g);
    char *text = unique_name(g, name);
    if (!text)
        return fail_memory(g);
    int index = g->value_count++;
    values[index] = *value;
    values[index].name = text;
    g->name_table[name_slot(g, text)] = index + 1;
    return index;
}

static int *append(struct graph *g, int **list, int *count, size_t *cap, int item)
{
    int *grown = arena_grow(&g->arena, *list, cap, (size_t)*count + 1, sizeof(int));
    if (!grown) {
        fail_memory(g);
        return NULL;
    }
    *list = grown;
    grown[(*count)++] = item;
    return grown;
}

static int add_source(struct graph *g, const char *name, const struct value *source)
{
    for (int k = 0; k < source->shape.rank; k++)
        if (source->shape.dim[k] < 0 && !g->failed) {
            FAIL(&g->err, STATUS_FAILED, "value \"%s\": dimension %d is negative (%lld)",
                 name ? name : "", k, (long long)source->shape.dim[k]);
            return fail(g);
        }
    return add_value(g, name, source);
}

int graph_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill)
{
    struct value value = {.kind = VALUE_INPUT,
                          .dtype = dtype,
                          .shape = shape,
                          .fill = fill,
                          .producer = NONE,
                          .count = NONE};
    int index = add_source(g, name, &value);
    if (index != NONE)
        append(g, &g->inputs, &g->input_count, &g->input_cap, index);
    return index;
}

void graph_cut(struct graph *g, int v)
{
    struct value *value = &g->values[v];
    if (value->producer != NONE)
        g->nodes[value->producer].outputs[value->producer_out] = NONE;
    value->producer = NONE;
}

void graph_make_input(struct graph *g, int v, struct fill fill)
{
    struct value *value = &g->values[v];
    graph_cut(g, v);
    value->kind = VALUE_INPUT;
    value->fill = fill;
    append(g, &g->inputs, &g->input_count, &g->input_cap, v);
}

int graph_param(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill)
{
    struct value value = {.kind = VALUE_PARAM,
                          .dtype = dtype,
                          .shape = shape,
                          .fill = fill,
                          .producer = NONE,
                          .count = NONE,
                          .weight = true};
    return add_source(g, name, &value);
}

int graph_const(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                const void *data)
{
    size_t bytes = (size_t)shape_count(&shape) * dtype_size(dtype);
    struct value value = {
        .kind = VALUE_CONST, .dtype = dtype, .shape = shape, .producer = NONE, .count = NONE};
    if (g->failed)
        return NONE;
    value.data = arena_copy(&g->arena, data, bytes ? bytes : 1);
    return value.data ? add_source(g, name, &value) : fail_memory(g);
}

int graph_const_f32(struct graph *g, float number)
{
    return graph_const(g, NULL, DTYPE_F32, shape_scalar(), &number);
}

int graph_const_i64(struct graph *g, int count, const int64_t *data)
{
    if (count < 0)
        return graph_const(g, NULL, DTYPE_I64, shape_scalar(), data);
    return graph_const(g, NULL, DTYPE_I64, shape_of(count), data);
}

void graph_output(struct graph *g, int value)
{
    bool state = false;
    int at = g->output_count;
    for (int s = 0; s < g->state_count && value != NONE; s++) {
        state = state || g->states[s].after == value;
        at -= g->states[s].after != NONE;
    }
    if (g->failed || value == NONE ||
        !append(g, &g->outputs, &g->output_count, &g->output_cap, value) || state)
        return;
    for (int k = g->output_count - 1; k > at; k--)
        g->outputs[k] = g->outputs[k - 1];
    g->outputs[at] = value;
}

/* ---- attributes ---- */

struct attr attr_int(const char *name, int64_t value)
{
    return (struct attr){.name = name, .kind = ATTR_INT, .i = value};
}

struct attr attr_float(const char *name, double value)
{
    return (struct attr){.name = name, .kind = ATTR_FLOAT, .f = value};
}

struct attr attr_string(const char *name, const char *value)
{
    return (struct attr){.name = name, .kind = ATTR_STRING, .s = value};
}

struct attr attr_ints(const char *name, int count, const int64_t *values)
{
    return (struct attr){.name = name, .kind = ATTR_INTS, .count = count, .ints = values};
}

static bool copy_attr(struct arena *arena, struct attr *attr)
{
    attr->name = arena_strdup(arena, attr->name);
    bool fine = attr->name;
    size_t count = (size_t)attr->count;
    if (attr->s)
        fine = fine && (attr->s = arena_strdup(arena, attr->s));
    if (attr->ints)
        fine = fine && (attr->ints = arena_copy(arena, attr->ints, count * sizeof(*attr->ints)));
    if (attr->floats)
        fine =
            fine && (attr->floats = arena_copy(arena, attr->floats, count * sizeof(*attr->floats)));
    if (attr->strings) {
        const char **strings = arena_array(arena, count ? count : 1, sizeof(*strings));
        if (strings)
            for (size_t k = 0; k < count; k++)
                fine = fine && (strings[k] = arena_strdup(arena, attr->strings[k]));
        fine = fine && strings;
        attr->strings = strings;
    }
    return fine;
}

static struct attr *copy_attrs(struct arena *arena, const struct attr *attrs, int count)
{
    struct attr *copy = arena_array(arena, (size_t)count + 1, sizeof(*copy));
    if (copy)
        for (int k = 0; k < count; k++) {
            copy[k] = attrs[k];
            if (!copy_attr(arena, &copy[k]))
                return NULL;
        }
    return copy;
}

/* ---- nodes ---- */

/* A call of graph_node_many on its way to becoming a node. */
struct request {
    const struct op *op;
    const char *name;
    int input_count, attr_count, output_count;
    const int *inputs;
    const struct attr *attrs;
};

static enum status check_request(const struct graph *g, const struct request *r, struct error *err)
{
    const struct op *op = r->op;
    int inputs_max = op_inputs_max(op);
    if (r->input_count < op->inputs_min || (inputs_max >= 0 && r->input_count > inputs_max))
        return FAIL(err, STATUS_FAILED, "%s takes %d to %d inputs, %d given", op->name,
                    op->inputs_min, inputs_max, r->input_count);
    int outputs_max = op->outputs_max ? op->outputs_max : 1;
    if (r->output_count < 1 || (outputs_max >= 0 && r->output_count > outputs_max))
        return FAIL(err, STATUS_FAILED, "%s gives 1 to %d outputs, %d wanted", op->name,
                    outputs_max, r->output_count);
    for (int k = 0; k < r->input_count; k++) {
        if (r->inputs[k] < NONE || r->inputs[k] >= g->value_count)
            return FAIL(err, STATUS_FAILED, "%s: input %d is not a value of this graph", op->name,
                        k);
        if (k < op->inputs_min && r->inputs[k] == NONE)
            return FAIL(err, STATUS_FAILED, "%s: input %d is required", op->name, k);
        bool integer = k < 32 && (op->int_inputs >> k & 1) && r->inputs[k] != NONE;
        if (integer && dtype_is_float(g->values[r->inputs[k]].dtype))
            return FAIL(err, STATUS_FAILED, "%s: input %d must hold integers, not %s", op->name, k,
                        dtype_name(g->values[r->inputs[k]].dtype));
    }
    return STATUS_OK;
}

static bool fill_node(struct graph *g, struct node *node, const struct request *r)
{
    char made[96];
    if (!r->name) {
        snprintf(made, sizeof(made), "%s_%d", r->op->name, g->node_count);
        node->name = arena_strdup(&g->arena, made);
    } else {
        node->name = arena_strdup(&g->arena, r->name);
    }
    node->op = r->op;
    node->input_count = node->op_inputs = r->input_count;
    node->output_count = r->output_count;
    node->attr_count = r->attr_count;
    size_t inputs = (size_t)r->input_count * sizeof(int);
    node->inputs = arena_copy(&g->arena, r->inputs, inputs);
    node->outputs = arena_array(&g->arena, (size_t)r->output_count, sizeof(int));
    node->attrs = copy_attrs(&g->arena, r->attrs, r->attr_count);
    return node->name && node->inputs && node->outputs && node->attrs;
}

/* Runs the shape rule into fresh values[0 .. output_count). */
static enum status infer_outputs(struct graph *g, const struct node *node, struct value *values,
                                 struct error *err)
{
    const struct value **in = arena_array(&g->arena, (size_t)node->input_count + 1, sizeof(*in));
    struct value **out = arena_array(&g->arena, (size_t)node->output_count + 1, sizeof(*out));
    if (!in || !out)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
    for (int k = 0; k < node->output_count; k++)
        out[k] = &values[k];
    struct infer c = {.node = node,
                      .in = in,
                      .out = out,
                      .in_count = node->input_count,
                      .out_count = node->output_count};
    TRY(node->op->infer(&c, err));
    for (int k = 0; k < node->output_count; k++) {
        if (values[k].dtype == DTYPE_NONE)
            return FAIL(err, STATUS_UNSUPPORTED, "output %d of %s has no shape rule", k,
                        node->op->name);
        for (int d = 0; d < values[k].shape.rank; d++)
            if (values[k].shape.dim[d] < 0)
                return FAIL(err, STATUS_FAILED, "output %d of %s would have a negative size", k,
                            node->op->name);
    }
    return STATUS_OK;
}

static enum status add_node(struct graph *g, const struct request *r, int *outputs)
{
    struct error *err = &g->err;
    TRY(check_request(g, r, err));
    struct node *nodes =
        arena_grow(&g->arena, g->nodes, &g->node_cap, (size_t)g->node_count + 1, sizeof(*nodes));
    struct value *made = arena_array(&g->arena, (size_t)r->output_count, sizeof(*made));
    if (!nodes || !made)
        return FAIL_NO_MEMORY(err);
    g->nodes = nodes;
    struct node *node = &nodes[g->node_count];
    *node = (struct node){.phase = g->phase};
    if (!fill_node(g, node, r))
        return FAIL_NO_MEMORY(err);
    enum status status = infer_outputs(g, node, made, err);
    if (status != STATUS_OK) {
        error_context(err, "node \"%s\"", node->name);
        return status;
    }
    for (int k = 0; k < r->output_count; k++) {
        char name[160];
        snprintf(name, sizeof(name), k ? "%s:%d" : "%s", node->name, k);
        made[k].kind = VALUE_RESULT;
        made[k].producer = g->node_count;
        made[k].producer_out = k;
        made[k].count = NONE;
        outputs[k] = node->outputs[k] = add_value(g, name, &made[k]);
        if (g->failed)
            return err->code;
    }
    g->node_count++;
    return STATUS_OK;
}

enum status graph_node_many(struct graph *g, const char *op, const char *name, int input_count,
                            const int *inputs, int attr_count, const struct attr *attrs,
                            int output_count, int *outputs)
{
    for (int k = 0; k < output_count; k++)
        outputs[k] = NONE;
    if (g->failed)
        return g->err.code;
    struct request r = {.op = op_named(op),
                        .name = name,
                        .input_count = input_count,
                        .inputs = inputs,
                        .attr_count = attr_count,
                        .attrs = attrs,
                        .output_count = output_count};
    enum status status =
        r.op ? add_node(g, &r, outputs) : UNSUPPORTED(&g->err, "operator \"%s\" is not known", op);
    if (status != STATUS_OK)
        fail(g);
    return status;
}

int graph_node(struct graph *g, const char *op, const char *name, int input_count,
               const int *inputs, int attr_count, const struct attr *attrs)
{
    int output = NONE;
    graph_node_many(g, op, name, input_count, inputs, attr_count, attrs, 1, &output);
    return output;
}
