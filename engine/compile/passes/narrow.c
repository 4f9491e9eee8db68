/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a graph of f32 one of bf16 or f16 (engine/ops/family/narrow.h says which operators take
 * part): tensors between them get 16 bits, weights are rounded here, and Cast nodes stand where the
 * two types meet. Inputs and outputs of the graph keep f32, and so does every value that an
 * operator in f32 reads. It runs last: batch norms were folded and chains joined in f32.
 *
 * Each value has at most one other form, so that no Cast is made twice and none undoes another; a
 * Cast that stood there and has nothing left to do is taken out. A second run changes nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/narrow.h"

struct readers {
    bool wide, narrow; /* whether any is */
};

struct narrowing {
    struct graph *g;
    enum dtype to;
    int nodes, values;       /* of the graph as it was */
    bool *wide;              /* per node: computes in f32 */
    bool *was_f32;           /* per value */
    bool *refused;           /* per node: by the judge, or by find_forms and keep_choices */
    bool *exact;             /* per value: see keep_choices */
    struct readers *readers; /* per value */
    int *forms;              /* per value: itself in the other type; NONE: not made */
};

static bool is_f32(const struct graph *g, int v)
{
    return v != NONE && g->values[v].dtype == DTYPE_F32;
}

/* ---- deciding: which nodes compute in f32 ---- */

static bool is_cast(const struct node *node)
{
    return node->op == &op_cast;
}

static bool computes(const struct node *node)
{
    return node->post_count || strcmp(node_string(node, "reduction", "none"), "none") != 0;
}

/* A Cast of integers to floats is made to give the narrow type at once; others were asked for. What
 * else moves elements may do more with them: a fused epilogue, the sums of a scatter. */
static enum narrow_class class_of(const struct graph *g, const struct node *node)
{
    enum narrow_class class = narrow_class_of(node->op);
    if (is_cast(node) && !dtype_is_float(g->values[node->inputs[0]].dtype))
        return is_f32(g, node->outputs[0]) ? NARROW_MATH : NARROW_NEVER;
    return class == NARROW_MOVE && computes(node) ? NARROW_MATH : class;
}

/* A Cast that the graph had already and that rounds as narrowing does. */
static bool is_narrowing(const struct narrowing *n, const struct node *node)
{
    return is_cast(node) && n->was_f32[node->inputs[0]] &&
           n->g->values[node->outputs[0]].dtype == n->to;
}

static bool takes_narrow(const struct narrowing *n, int node, int k)
{
    const struct node *reader = &n->g->nodes[node];
    if (is_narrowing(n, reader))
        return true;
    return !n->wide[node] && (k >= reader->op_inputs || narrow_takes(reader->op, k));
}

static struct readers readers_of(const struct narrowing *n, const struct node *node)
{
    struct readers r = {false, false};
    for (int k = 0; k < node->output_count; k++) {
        if (!is_f32(n->g, node->outputs[k]))
            continue;
        r.wide = r.wide || n->readers[node->outputs[k]].wide;
        r.narrow = r.narrow || n->readers[node->outputs[k]].narrow;
    }
    return r;
}

static bool is_made_of(const struct node *node, const struct state *state)
{
    bool makes = false, takes = false;
    for (int k = 0; k < node->output_count; k++)
        makes = makes ||
                (node->outputs[k] == state->after && node->op->in_place >> (k < 31 ? k : 31) & 1);
    for (int k = 0; k < node->op_inputs && makes; k++)
        takes = takes || (node->inputs[k] == state->before && narrow_takes(node->op, k));
    return takes;
}

/* Whether the node changes a state of f32 where it lies. It computes in f32: in another type all of
 * the state would be cast to and fro, since a state keeps its type. */
static bool changes_state(const struct graph *g, const struct node *node)
{
    for (int s = 0; s < g->state_count; s++)
        if (is_f32(g, g->states[s].before) && is_made_of(node, &g->states[s]))
            return true;
    return false;
}

/* From the last node to the first: what only f32 reads is f32, so that nothing is rounded on the
 * way to a decision. */
static void decide_by_readers(struct narrowing *n)
{
    for (int i = n->nodes - 1; i >= 0; i--) {
        const struct node *node = &n->g->nodes[i];
        enum narrow_class class = n->refused[i] ? NARROW_NEVER : class_of(n->g, node);
        struct readers r = readers_of(n, node);
        n->wide[i] = class == NARROW_NEVER || (class != NARROW_WORK && r.wide && !r.narrow);
        for (int k = 0; k < node->input_count; k++) {
            if (!is_f32(n->g, node->inputs[k]))
                continue;
            struct readers *of = &n->readers[node->inputs[k]];
            *(takes_narrow(n, i, k) ? &of->narrow : &of->wide) = true;
        }
    }
}

/* How many of the node's inputs that change from run to run come in f32, and how many narrow. */
static void count_inputs(const struct narrowing *n, const struct node *node, int *wide, int *narrow)
{
    *wide = *narrow = 0;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k], producer = v == NONE ? NONE : n->g->values[v].producer;
        if (!is_f32(n->g, v) || value_is_fixed(&n->g->values[v]))
            continue;
        *(producer == NONE || n->wide[producer] ? wide : narrow) += 1;
    }
}

/* Then onwards: moving keeps what comes in f32 for a reader in f32, and does not widen what has
 * been rounded; a sum of nothing but f32 stays so if anything wants it. */
static void decide_by_inputs(struct narrowing *n)
{
    for (int i = 0; i < n->nodes; i++) {
        const struct node *node = &n->g->nodes[i];
        enum narrow_class class = class_of(n->g, node);
        int wide, narrow;
        count_inputs(n, node, &wide, &narrow);
        bool wanted = readers_of(n, node).wide;
        if (n->refused[i])
            continue;
        if (class == NARROW_MOVE && wide + narrow > 0)
            n->wide[i] = wanted && wide > 0;
        else if (class == NARROW_MATH && wide > 0 && narrow == 0)
            n->wide[i] = n->wide[i] || wanted;
    }
}

/* ---- weights ---- */

/* What the type cannot hold becomes its largest number, and a single number that would vanish its
 * smallest: masks by -3e38 and divisors of 1e-12 keep their sense. */
static void keep_sense(enum dtype to, float *data, int64_t count)
{
    const float largest = to == DTYPE_F16 ? 65504.0f : 0x1.fep127f;
    const float least = to == DTYPE_F16 ? 0x1p-24f : 0x1p-133f;
    for (int64_t k = 0; k < count; k++)
        if (isfinite(data[k]) && fabsf(data[k]) > largest)
            data[k] = copysignf(largest, data[k]);
    if (count == 1 && data[0] != 0 && fabsf(data[0]) < least)
        data[0] = copysignf(least, data[0]);
}

static void *rounded(const struct value *value, enum dtype to)
{
    int64_t count = shape_count(&value->shape);
    float *data = malloc((size_t)count * sizeof(*data) + 1);
    void *made = malloc((size_t)count * dtype_size(to) + 1);
    if (data && made) {
        value_materialise(value, data);
        keep_sense(to, data, count);
        floats_store(to, data, made, count);
        free(data);
        return made;
    }
    free(data);
    free(made);
    return NULL;
}

/* Generated weights stay generated: rounded when they are made, from the same seed. */
static int narrow_weight(struct narrowing *n, int v, struct error *err)
{
    struct graph *g = n->g;
    struct fill fill = g->values[v].fill;
    bool made = g->values[v].data || shape_count(&g->values[v].shape) == 1;
    void *data = made ? rounded(&g->values[v], n->to) : NULL;
    fill.seed = fill.seed ? fill.seed : hash_fnv1a(g->values[v].name);
    int fresh =
        !made || data ? graph_param(g, g->values[v].name, n->to, g->values[v].shape, fill) : NONE;
    if (fresh == NONE) {
        free(data);
        FAIL_NO_MEMORY(err);
        return NONE;
    }
    g->values[fresh].kind = g->values[v].kind;
    g->values[fresh].data = data;
    g->values[fresh].data_owned = data != NULL;
    return fresh;
}

/* ---- rewriting ---- */

static int64_t onnx_code(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 1 : dtype == DTYPE_F16 ? 10 : 16;
}

/* v in the other type: f32 of what is narrow, and the other way round. */
static enum status other_form(struct narrowing *n, int v, int *form, struct error *err)
{
    bool narrow = is_f32(n->g, v);
    *form = n->forms[v];
    if (*form != NONE)
        return STATUS_OK;
    if (narrow && value_is_fixed(&n->g->values[v])) {
        *form = narrow_weight(n, v, err);
    } else {
        int64_t code = onnx_code(narrow ? n->to : DTYPE_F32);
        *form = graph_node(n->g, op_cast.name, NULL, INPUTS(v), ATTRS(attr_int("to", code)));
    }
    n->forms[v] = *form;
    if (*form != NONE)
        return STATUS_OK;
    return n->g->failed ? graph_check(n->g, err) : FAIL_NO_MEMORY(err);
}

static enum status retype_inputs(struct narrowing *n, int index, struct error *err)
{
    if (is_narrowing(n, &n->g->nodes[index]))
        return STATUS_OK; /* of either type: see drop_casts */
    n->g->phase = n->g->nodes[index].phase;
    int *inputs = n->g->nodes[index].inputs, count = n->g->nodes[index].input_count;
    for (int k = 0; k < count; k++) {
        int v = inputs[k];
        if (v == NONE || !n->was_f32[v] || takes_narrow(n, index, k) != is_f32(n->g, v))
            continue;
        TRY(other_form(n, v, &inputs[k], err));
    }
    return STATUS_OK;
}

/* The type that the node, its inputs changed, gives its outputs by its own rule. */
static enum status retype_outputs(struct narrowing *n, int index, struct error *err)
{
    struct graph *g = n->g;
    struct node *node = &g->nodes[index];
    size_t ins = (size_t)node->input_count + 1, outs = (size_t)node->output_count + 1;
    const struct value **in = arena_array(&g->arena, ins, sizeof(*in));
    struct value *values = arena_array(&g->arena, outs, sizeof(*values));
    struct value **out = arena_array(&g->arena, outs, sizeof(*out));
    if (!in || !values || !out)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
    for (int k = 0; k < node->output_count; k++)
        out[k] = node->outputs[k] == NONE ? NULL : &values[k];
    struct infer c = {.node = node,
                      .in = in,
                      .out = out,
                      .in_count = node->op_inputs,
                      .out_count = node->output_count};
    TRY(node->op->infer(&c, err));
    for (int k = 0; k < node->output_count; k++)
        if (out[k])
            g->values[node->outputs[k]].dtype = out[k]->dtype;
    return STATUS_OK;
}

static enum status retype_node(struct narrowing *n, int index, struct error *err)
{
    TRY(retype_inputs(n, index, err));
    struct node *node = &n->g->nodes[index];
    if (n->wide[index])
        return STATUS_OK;
    if (is_cast(node)) {
        struct attr to = attr_int("to", onnx_code(n->to));
        node->attrs = arena_copy(&n->g->arena, &to, sizeof(to));
        node->attr_count = 1;
        if (!node->attrs)
            return FAIL_NO_MEMORY(err);
    }
    enum status status = retype_outputs(n, index, err);
    return status == STATUS_OK ? STATUS_OK
                               : error_context(err, "node \"%s\"", n->g->nodes[index].name);
}

/* The user's name stays with what the user gets. */
static enum status widen_outputs(struct narrowing *n, struct error *err)
{
    struct graph *g = n->g;
    for (int k = 0; k < g->output_count; k++) {
        int v = g->outputs[k], form;
        if (v >= n->values || !n->was_f32[v] || is_f32(g, v))
            continue;
        TRY(other_form(n, v, &form, err));
        const char *name = g->values[v].name;
        graph_rename(g, v, dtype_name(n->to));
        graph_rename(g, form, name);
        g->outputs[k] = form;
    }
    return STATUS_OK;
}

/* Casts that the graph had already and whose operands have become as narrow as their results. */
static void drop_casts(struct narrowing *n)
{
    struct graph *g = n->g;
    for (int i = 0; i < n->nodes; i++) {
        int from = g->nodes[i].inputs[0], to = g->nodes[i].outputs[0];
        if (!is_cast(&g->nodes[i]) || g->values[from].dtype != g->values[to].dtype)
            continue;
        bool output = rewrite_is_output(g, to);
        if (output && (g->values[from].kind != VALUE_RESULT || rewrite_is_output(g, from)))
            continue;
        const char *name = g->values[to].name;
        if (output) {
            graph_rename(g, to, "cast");
            graph_rename(g, from, name);
        }
        rewrite_replace(g, to, from);
    }
}

/* Where it refuses all, f32 would go by the name of another precision. */
static enum status ask_judge(struct narrowing *n, const struct narrow_judge *judge,
                             struct error *err)
{
    int asked = 0, agreed = 0;
    for (int i = 0; judge && judge->judge && i < n->nodes; i++) {
        bool narrow = false;
        enum narrow_class class = class_of(n->g, &n->g->nodes[i]);
        if (class == NARROW_NEVER)
            continue;
        TRY(judge->judge(judge->context, n->g, i, &narrow, err));
        n->refused[i] = !narrow;
        asked += class != NARROW_MOVE;
        agreed += class != NARROW_MOVE && narrow;
    }
    return !asked || agreed
               ? STATUS_OK
               : UNSUPPORTED(err, "no kernel that may be used computes any of it in %s",
                             dtype_name(n->to));
}

/* Choices that are indices of something large (op.h, exact_inputs): what they are made of keeps
 * f32, back to the first products and with them, or near ties would be chosen otherwise. */
static void keep_choices(struct narrowing *n)
{
    const struct graph *g = n->g;
    for (int i = n->nodes - 1; i >= 0; i--) {
        const struct node *node = &g->nodes[i];
        bool exact = false;
        for (int k = 0; k < node->output_count; k++)
            exact = exact || (node->outputs[k] != NONE && n->exact[node->outputs[k]]);
        n->refused[i] = n->refused[i] || exact;
        bool ends = narrow_class_of(node->op) == NARROW_WORK;
        for (int k = 0; k < node->op_inputs; k++)
            if (node->inputs[k] != NONE)
                n->exact[node->inputs[k]] |=
                    (exact && !ends) || (k < 32 && node->op->exact_inputs >> k & 1);
    }
}

/* What a Cast widens has its narrow form already: a cache that is a state of 16 bits is read as it
 * lies. */
static void find_forms(struct narrowing *n)
{
    for (int i = 0; i < n->nodes; i++) {
        const struct node *node = &n->g->nodes[i];
        bool widens = is_cast(node) && is_f32(n->g, node->outputs[0]) &&
                      n->g->values[node->inputs[0]].dtype == n->to;
        n->refused[i] = n->refused[i] || widens || changes_state(n->g, node);
        if (widens)
            n->forms[node->outputs[0]] = node->inputs[0];
    }
}

static enum status narrow(struct narrowing *n, const struct narrow_judge *judge, struct error *err)
{
    struct graph *g = n->g;
    size_t nodes = (size_t)n->nodes + 1, values = (size_t)n->values + 1;
    n->wide = arena_array(&g->arena, nodes, sizeof(*n->wide));
    n->refused = arena_array(&g->arena, nodes, sizeof(*n->refused));
    n->was_f32 = arena_array(&g->arena, values, sizeof(*n->was_f32));
    n->exact = arena_array(&g->arena, values, sizeof(*n->exact));
    n->readers = arena_array(&g->arena, values, sizeof(*n->readers));
    n->forms = arena_array(&g->arena, values, sizeof(*n->forms));
    if (!n->wide || !n->refused || !n->was_f32 || !n->exact || !n->readers || !n->forms)
        return FAIL_NO_MEMORY(err);
    for (int v = 0; v < n->values; v++) {
        n->forms[v] = NONE;
        n->was_f32[v] = is_f32(g, v);
    }
    TRY(ask_judge(n, judge, err));
    find_forms(n);
    keep_choices(n);
    decide_by_readers(n);
    decide_by_inputs(n);
    for (int i = 0; i < n->nodes; i++)
        TRY(retype_node(n, i, err));
    TRY(widen_outputs(n, err));
    drop_casts(n);
    return STATUS_OK;
}

enum status pass_narrow(struct graph *g, enum dtype to, const struct narrow_judge *judge,
                        struct error *err)
{
    struct narrowing n = {.g = g, .to = to, .nodes = g->node_count, .values = g->value_count};
    return narrow(&n, judge, err);
}
