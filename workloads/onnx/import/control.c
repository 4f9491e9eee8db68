/* SPDX-License-Identifier: Apache-2.0
 *
 * Control flow, resolved before the run: a graph here has none.
 *
 * If with a known condition becomes its branch; with an unknown one both branches, and a Where per
 * output. Loop and Scan are unrolled when their length is known; iterations after a condition of a
 * Loop that is not known change nothing, by a Where per variable. Subgraphs see the names around
 * them. */
#include <string.h>

#include "workloads/onnx/import/import.h"

bool is_control(const Onnx__NodeProto *node)
{
    const char *op = text_of(node->op_type);
    return is_onnx_domain(node->domain) &&
           (strcmp(op, "If") == 0 || strcmp(op, "Loop") == 0 || strcmp(op, "Scan") == 0);
}

/* A subgraph with what goes in and what comes out. */
struct body {
    const Onnx__GraphProto *graph;
    int *in, *out; /* values, as many as the graph has inputs and outputs */
};

static enum status body_of(struct importer *im, const struct scope *scope,
                           const Onnx__NodeProto *node, const char *attr, struct body *body,
                           struct error *err)
{
    const Onnx__AttributeProto *found = scope_attr(scope, node, attr);
    if (!found || !found->g)
        return FAIL(err, STATUS_FAILED, "the graph \"%s\" is missing", attr);
    body->graph = found->g;
    body->in = arena_array(&im->scratch, found->g->n_input + 1, sizeof(int));
    body->out = arena_array(&im->scratch, found->g->n_output + 1, sizeof(int));
    return body->in && body->out ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status run_body(struct importer *im, const struct scope *around, struct body *body,
                            struct error *err)
{
    const Onnx__GraphProto *graph = body->graph;
    struct scope scope = scope_inside(around);
    im->inlined += graph->n_node < INLINED_MAX ? (int)graph->n_node + 1 : INLINED_MAX;
    if (im->inlined > INLINED_MAX || im->depth >= CALL_DEPTH_MAX)
        return UNSUPPORTED(err, "loops and branches become more than %d nodes", INLINED_MAX);
    for (size_t k = 0; k < graph->n_input; k++)
        TRY(scope_put(im, &scope, graph->input[k]->name, body->in[k], err));
    im->depth++;
    TRY(import_initializers(im, &scope, graph, err));
    TRY(import_nodes(im, &scope, graph->n_node, graph->node, err));
    im->depth--;
    for (size_t k = 0; k < graph->n_output; k++) {
        TRY(scope_get(&scope, graph->output[k]->name, &body->out[k], err));
        if (body->out[k] == NONE)
            return FAIL(err, STATUS_FAILED, "a subgraph's output is absent");
    }
    return STATUS_OK;
}

static enum status put_output(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                              size_t k, int value, struct error *err)
{
    return k < node->n_output ? scope_put(im, scope, node->output[k], value, err) : STATUS_OK;
}

/* ---- If ---- */

static enum status check_alike(const struct graph *g, int a, int b, const char *what,
                               struct error *err)
{
    const struct value *x = &g->values[a], *y = &g->values[b];
    char left[96], right[96];
    if (x->count != NONE || y->count != NONE)
        return UNSUPPORTED(err, "%s whose results have a size known only at run time", what);
    if (x->dtype == y->dtype && shape_equal(&x->shape, &y->shape))
        return STATUS_OK;
    return UNSUPPORTED(err,
                       "the condition is known only at run time, and the %s give %s%s and %s%s",
                       what, dtype_name(x->dtype), shape_text(&x->shape, left),
                       dtype_name(y->dtype), shape_text(&y->shape, right));
}

static enum status choose_at_run_time(struct importer *im, struct scope *scope,
                                      const Onnx__NodeProto *node, int condition,
                                      const struct body *branches, struct error *err)
{
    for (size_t k = 0; k < node->n_output; k++) {
        int yes = branches[0].out[k], no = branches[1].out[k];
        TRY(check_alike(im->g, yes, no, "branches", err));
        int value = add_node(im, "Where", INPUTS(condition, yes, no), NO_ATTRS);
        TRY(graph_failed(im->g, err));
        TRY(put_output(im, scope, node, k, value, err));
    }
    return STATUS_OK;
}

static enum status import_if(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                             struct error *err)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    struct body branches[2];
    struct error unknown;
    int condition;
    int64_t yes = 0;
    if (node->n_input != 1)
        return FAIL(err, STATUS_FAILED, "If has one input");
    TRY(scope_get(scope, node->input[0], &condition, err));
    if (condition == NONE || shape_count(&im->g->values[condition].shape) != 1)
        return FAIL(err, STATUS_FAILED, "the condition must have one element");
    bool known = known_int(im, condition, &yes, &unknown) == STATUS_OK;
    for (int k = 0; k < 2; k++) {
        if (known && k != !yes)
            continue;
        TRY(body_of(im, scope, node, names[k], &branches[k], err));
        if (branches[k].graph->n_input || branches[k].graph->n_output < node->n_output)
            return FAIL(err, STATUS_FAILED, "%s has inputs or too few outputs", names[k]);
        if (run_body(im, scope, &branches[k], err) != STATUS_OK)
            return error_context(err, "%s", names[k]);
    }
    if (!known)
        return choose_at_run_time(im, scope, node, condition, branches, err);
    for (size_t k = 0; k < node->n_output; k++)
        TRY(put_output(im, scope, node, k, branches[!yes].out[k], err));
    return STATUS_OK;
}

/* ---- what loops collect ---- */

/* Per scan output: the value of each iteration. */
struct collected {
    int **values;
    size_t *caps;
    int count, iterations; /* outputs; values in each */
};

static enum status collect_begin(struct importer *im, struct collected *c, size_t count,
                                 struct error *err)
{
    *c = (struct collected){.count = (int)count};
    c->values = arena_array(&im->scratch, count + 1, sizeof(*c->values));
    c->caps = arena_array(&im->scratch, count + 1, sizeof(*c->caps));
    return c->values && c->caps ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status collect(struct importer *im, struct collected *c, const int *values,
                           struct error *err)
{
    for (int k = 0; k < c->count; k++) {
        c->values[k] = arena_grow(&im->scratch, c->values[k], &c->caps[k],
                                  (size_t)c->iterations + 1, sizeof(int));
        if (!c->values[k])
            return FAIL_NO_MEMORY(err);
        c->values[k][c->iterations] = values[k];
    }
    c->iterations++;
    return STATUS_OK;
}

static void reverse(int *values, int count)
{
    for (int k = 0; k < count / 2; k++) {
        int other = values[count - 1 - k];
        values[count - 1 - k] = values[k];
        values[k] = other;
    }
}

/* The iterations stacked along a new axis. */
static enum status stack(struct importer *im, const struct collected *c, int output, int64_t axis,
                         int *value, struct error *err)
{
    int *parts = c->values[output];
    if (!c->iterations)
        return UNSUPPORTED(err, "a loop that never runs but has scan outputs");
    int axes = graph_const_i64(im->g, 1, &axis);
    for (int k = 0; k < c->iterations; k++)
        parts[k] = add_node(im, "Unsqueeze", INPUTS(parts[k], axes), NO_ATTRS);
    TRY(graph_failed(im->g, err));
    if (axis < 0) /* Unsqueeze counted it in the result */
        axis += im->g->values[parts[0]].shape.rank;
    *value = c->iterations == 1
                 ? parts[0]
                 : add_node(im, "Concat", c->iterations, parts, ATTRS(attr_int("axis", axis)));
    return graph_failed(im->g, err);
}

static enum status check_length(const struct body *body, int64_t trips, struct error *err)
{
    int64_t nodes =
        (int64_t)(body->graph->n_node < INLINED_MAX ? body->graph->n_node : INLINED_MAX);
    if (trips <= UNROLLED_MAX && trips * (nodes + 1) <= UNROLLED_MAX)
        return STATUS_OK;
    return UNSUPPORTED(err, "%lld iterations of %lld nodes; loops are unrolled up to %d nodes",
                       (long long)trips, (long long)nodes, UNROLLED_MAX);
}

/* ---- Loop ---- */

struct loop {
    const Onnx__NodeProto *node;
    struct body body;
    int64_t trips; /* -1: until the condition is false */
    size_t vars;   /* loop-carried */
    int gate;      /* whether it goes on, when that is known only at run time; NONE */
    struct collected scans;
};

static enum status loop_begin(struct importer *im, struct scope *scope, struct loop *loop,
                              struct error *err)
{
    const Onnx__NodeProto *node = loop->node;
    int trips = NONE;
    loop->trips = -1;
    if (node->n_input < 2)
        return FAIL(err, STATUS_FAILED, "Loop has at least two inputs");
    TRY(body_of(im, scope, node, "body", &loop->body, err));
    const Onnx__GraphProto *graph = loop->body.graph;
    loop->vars = node->n_input - 2;
    if (graph->n_input != loop->vars + 2 || graph->n_output < loop->vars + 1)
        return FAIL(err, STATUS_FAILED, "the body has %zu inputs and %zu outputs for %zu variables",
                    graph->n_input, graph->n_output, loop->vars);
    TRY(scope_get(scope, node->input[0], &trips, err));
    if (trips != NONE && known_int(im, trips, &loop->trips, err) != STATUS_OK)
        return error_context(err, "the trip count must be known before the run");
    loop->trips = trips != NONE && loop->trips < 0 ? 0 : loop->trips;
    if (loop->trips >= 0)
        TRY(check_length(&loop->body, loop->trips, err));
    for (size_t k = 0; k < loop->vars; k++)
        TRY(scope_get(scope, node->input[k + 2], &loop->body.in[k + 2], err));
    return collect_begin(im, &loop->scans, graph->n_output - loop->vars - 1, err);
}

/* *on: whether there may be a next iteration. */
static enum status goes_on(struct importer *im, struct loop *loop, int condition, bool *on,
                           struct error *err)
{
    struct error unknown;
    int64_t number = 1;
    bool known = condition == NONE || known_int(im, condition, &number, &unknown) == STATUS_OK;
    *on = !known || number != 0;
    if (known)
        return STATUS_OK;
    if (shape_count(&im->g->values[condition].shape) != 1)
        return FAIL(err, STATUS_FAILED, "the condition must have one element");
    if (loop->trips < 0 || loop->scans.count)
        return UNSUPPORTED(err, "the condition is known only at run time, and there %s",
                           loop->trips < 0 ? "is no trip count" : "are scan outputs");
    loop->gate = loop->gate == NONE ? condition
                                    : add_node(im, "And", INPUTS(loop->gate, condition), NO_ATTRS);
    return graph_failed(im->g, err);
}

/* Variables keep their values when the loop has ended before. */
static enum status pass_gate(struct importer *im, struct loop *loop, struct error *err)
{
    struct body *body = &loop->body;
    if (loop->gate != NONE)
        for (size_t k = 0; k < loop->vars; k++) {
            int now = body->in[k + 2], next = body->out[k + 1];
            TRY(check_alike(im->g, next, now, "iterations", err));
            body->out[k + 1] = add_node(im, "Where", INPUTS(loop->gate, next, now), NO_ATTRS);
        }
    return graph_failed(im->g, err);
}

static enum status loop_run(struct importer *im, struct scope *scope, struct loop *loop,
                            int condition, struct error *err)
{
    static const uint8_t yes = 1;
    struct body *body = &loop->body;
    bool on = false;
    TRY(goes_on(im, loop, condition, &on, err));
    for (int64_t k = 0; on && (loop->trips < 0 || k < loop->trips); k++) {
        TRY(check_length(body, k + 1, err));
        struct shape scalar = shape_scalar();
        body->in[0] = graph_const_i64(im->g, -1, &k);
        body->in[1] = graph_const(im->g, NULL, DTYPE_BOOL, scalar, &yes);
        TRY(graph_failed(im->g, err));
        if (run_body(im, scope, body, err) != STATUS_OK || pass_gate(im, loop, err) != STATUS_OK)
            return error_context(err, "iteration %lld", (long long)k);
        TRY(collect(im, &loop->scans, body->out + 1 + loop->vars, err));
        memcpy(body->in + 2, body->out + 1, loop->vars * sizeof(int));
        TRY(goes_on(im, loop, body->out[0], &on, err));
    }
    return STATUS_OK;
}

static enum status import_loop(struct importer *im, struct scope *scope,
                               const Onnx__NodeProto *node, struct error *err)
{
    struct loop loop = {.node = node, .gate = NONE};
    int condition;
    TRY(loop_begin(im, scope, &loop, err));
    TRY(scope_get(scope, node->input[1], &condition, err));
    TRY(loop_run(im, scope, &loop, condition, err));
    for (size_t k = 0; k < loop.vars; k++)
        TRY(put_output(im, scope, node, k, loop.body.in[k + 2], err));
    for (int k = 0; k < loop.scans.count; k++) {
        size_t output = loop.vars + (size_t)k;
        int value;
        if (output >= node->n_output || !*node->output[output])
            continue;
        TRY(stack(im, &loop.scans, k, 0, &value, err));
        TRY(put_output(im, scope, node, output, value, err));
    }
    return STATUS_OK;
}

/* ---- Scan ---- */

struct scan {
    const Onnx__NodeProto *node;
    const struct scope *scope;
    struct body body;
    size_t states, inputs; /* inputs: those that are scanned */
    int64_t trips;
    struct collected outputs;
};

/* Element k of a list attribute; 0 when the list is absent or shorter. */
static int64_t list_at(const struct scan *s, const char *name, size_t k)
{
    const Onnx__AttributeProto *attr = scope_attr(s->scope, s->node, name);
    return attr && k < attr->n_ints ? attr->ints[k] : 0;
}

static enum status scan_axis(struct importer *im, const struct scan *s, size_t k, int *axis,
                             struct error *err)
{
    int value;
    TRY(scope_get(s->scope, s->node->input[s->states + k], &value, err));
    *axis = value == NONE
                ? -1
                : shape_axis(&im->g->values[value].shape, list_at(s, "scan_input_axes", k));
    return *axis >= 0 ? STATUS_OK : FAIL(err, STATUS_FAILED, "scan input %zu has no such axis", k);
}

static enum status scan_begin(struct importer *im, struct scan *s, struct error *err)
{
    const Onnx__AttributeProto *count = scope_attr(s->scope, s->node, "num_scan_inputs");
    if (s->scope->opset < 9)
        return UNSUPPORTED(err, "Scan of opset 8; export the model with opset 9 or later");
    if (!count || count->i < 1 || (uint64_t)count->i > s->node->n_input)
        return FAIL(err, STATUS_FAILED, "num_scan_inputs is missing or wrong");
    TRY(body_of(im, s->scope, s->node, "body", &s->body, err));
    s->inputs = (size_t)count->i;
    s->states = s->node->n_input - s->inputs;
    if (s->body.graph->n_input != s->node->n_input || s->body.graph->n_output < s->states)
        return FAIL(err, STATUS_FAILED, "the body's inputs or outputs do not match");
    s->trips = -1;
    for (size_t k = 0; k < s->inputs; k++) {
        int axis, value;
        TRY(scan_axis(im, s, k, &axis, err));
        TRY(scope_get(s->scope, s->node->input[s->states + k], &value, err));
        int64_t length = im->g->values[value].shape.dim[axis];
        if (im->g->values[value].count != NONE || (s->trips >= 0 && s->trips != length))
            return FAIL(err, STATUS_FAILED, "scan inputs have different lengths");
        s->trips = length;
    }
    TRY(check_length(&s->body, s->trips, err));
    for (size_t k = 0; k < s->states; k++)
        TRY(scope_get(s->scope, s->node->input[k], &s->body.in[k], err));
    return collect_begin(im, &s->outputs, s->body.graph->n_output - s->states, err);
}

static enum status scan_step(struct importer *im, struct scan *s, int64_t step, struct error *err)
{
    for (size_t k = 0; k < s->inputs; k++) {
        int axis, value;
        bool backward = list_at(s, "scan_input_directions", k) != 0;
        int64_t at = backward ? s->trips - 1 - step : step;
        TRY(scan_axis(im, s, k, &axis, err));
        TRY(scope_get(s->scope, s->node->input[s->states + k], &value, err));
        int index = graph_const_i64(im->g, -1, &at);
        s->body.in[s->states + k] =
            add_node(im, "Gather", INPUTS(value, index), ATTRS(attr_int("axis", axis)));
    }
    TRY(graph_failed(im->g, err));
    if (run_body(im, s->scope, &s->body, err) != STATUS_OK)
        return error_context(err, "iteration %lld", (long long)step);
    memcpy(s->body.in, s->body.out, s->states * sizeof(int));
    return collect(im, &s->outputs, s->body.out + s->states, err);
}

static enum status import_scan(struct importer *im, struct scope *scope,
                               const Onnx__NodeProto *node, struct error *err)
{
    struct scan s = {.node = node, .scope = scope};
    TRY(scan_begin(im, &s, err));
    for (int64_t k = 0; k < s.trips; k++)
        TRY(scan_step(im, &s, k, err));
    for (size_t k = 0; k < s.states; k++)
        TRY(put_output(im, scope, node, k, s.body.in[k], err));
    for (int k = 0; k < s.outputs.count; k++) {
        size_t output = s.states + (size_t)k;
        int value;
        if (output >= node->n_output || !*node->output[output])
            continue;
        if (list_at(&s, "scan_output_directions", (size_t)k))
            reverse(s.outputs.values[k], s.outputs.iterations);
        TRY(stack(im, &s.outputs, k, list_at(&s, "scan_output_axes", (size_t)k), &value, err));
        TRY(put_output(im, scope, node, output, value, err));
    }
    return STATUS_OK;
}

enum status import_control(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                           struct error *err)
{
    if (strcmp(node->op_type, "If") == 0)
        return import_if(im, scope, node, err);
    return strcmp(node->op_type, "Loop") == 0 ? import_loop(im, scope, node, err)
                                              : import_scan(im, scope, node, err);
}
