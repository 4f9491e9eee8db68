/* SPDX-License-Identifier: Apache-2.0
 *
 * AUGRU as a Loop: x W' of all steps before it, as in our kernels, and a step in its body. A Scan
 * says the same, but OpenVINO does not read one. */
#include <stdlib.h>

#include "engine/ops/lib/rnn.h"
#include "workloads/onnx/export/inner.h"

enum { GATES = 3 };

struct augru {
    const struct form *form;
    struct rnn_shape s;
    struct graph *before, *body, *after;
    /* outputs of `before` */
    int projected, gates_r, candidate_r, gates_bias, candidate_bias, alive, attention;
    int steps, always, state; /* what the loop begins with */
};

static bool has(const struct augru *a, int input)
{
    const struct node *node = a->form->node;
    return input < node->input_count && node->inputs[input] != NONE;
}

static int capture(const struct augru *a, struct graph *to, int input)
{
    return inner_capture(to, a->form->x->g, a->form->node->inputs[input]);
}

static int part(struct graph *g, int x, int64_t axis, int64_t from, int64_t to)
{
    return graph_node(g, "Slice", NULL,
                      INPUTS(x, graph_const_i64(g, 1, &from), graph_const_i64(g, 1, &to),
                             graph_const_i64(g, 1, &axis)),
                      NO_ATTRS);
}

static int matrix(struct graph *g, int x, int64_t rows, int64_t columns)
{
    int64_t dim[] = {rows, columns};
    return op2(g, "Reshape", x, graph_const_i64(g, 2, dim));
}

static int zeros(struct graph *g, int64_t rows, int64_t columns)
{
    float *data = calloc((size_t)(rows * columns) + 1, sizeof(float));
    int value = data ? graph_const(g, NULL, DTYPE_F32, shape_of(rows, columns), data) : NONE;
    free(data);
    return value;
}

/* bool [T, B, 1]: whether each sequence goes on at each step. */
static int alive(const struct augru *a, struct graph *g)
{
    int64_t steps = a->s.steps, dim[] = {1, a->s.batch, 1};
    int32_t *number = malloc((size_t)(steps + 1) * sizeof(*number));
    if (number)
        for (int64_t t = 0; t < steps; t++)
            number[t] = (int32_t)t;
    int step = number ? graph_const(g, NULL, DTYPE_I32, shape_of(steps, 1, 1), number) : NONE;
    free(number);
    int length = has(a, RNN_LENGTHS)
                     ? capture(a, g, RNN_LENGTHS)
                     : graph_const(g, NULL, DTYPE_I32, shape_of(1), &(int32_t){(int32_t)steps});
    if (has(a, RNN_LENGTHS))
        length = op2(g, "Reshape", length, graph_const_i64(g, 3, dim));
    int shape = graph_const_i64(g, 3, (int64_t[]){steps, a->s.batch, 1});
    return op2(g, "Expand", op2(g, "Less", step, length), shape);
}

static void build_before(struct augru *a)
{
    struct graph *g = a->before;
    int64_t h = a->s.hidden, rows = GATES * h;
    int w = matrix(g, capture(a, g, RNN_W), rows, a->s.input);
    int r = matrix(g, capture(a, g, RNN_R), rows, h);
    int bias = has(a, RNN_BIAS) ? capture(a, g, RNN_BIAS) : zeros(g, 1, 2 * rows);
    int x = op2(g, "MatMul", capture(a, g, RNN_X), op1(g, "Transpose", w));
    a->projected = op2(g, "Add", x, part(g, bias, 1, 0, rows));
    a->gates_r = op1(g, "Transpose", part(g, r, 0, 0, 2 * h));
    a->candidate_r = op1(g, "Transpose", part(g, r, 0, 2 * h, rows));
    a->gates_bias = part(g, bias, 1, rows, rows + 2 * h);
    a->candidate_bias = part(g, bias, 1, rows + 2 * h, 2 * rows);
    a->alive = alive(a, g);
    a->state = has(a, RNN_H) ? matrix(g, capture(a, g, RNN_H), a->s.batch, h)
                             : op1(g, "Identity", zeros(g, a->s.batch, h));
    bool yes = true;
    a->attention = op1(g, "Identity", capture(a, g, RNN_ATTENTION));
    a->steps = op1(g, "Identity", graph_const_i64(g, -1, &a->s.steps));
    a->always = op1(g, "Identity", graph_const(g, NULL, DTYPE_BOOL, shape_scalar(), &yes));
    int outputs[] = {a->projected, a->gates_r,   a->candidate_r, a->gates_bias, a->candidate_bias,
                     a->alive,     a->attention, a->steps,       a->always,     a->state};
    for (int k = 0; k < ARRAY_COUNT(outputs); k++)
        graph_output(g, outputs[k]);
}

static int formal(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
    return graph_input(g, name, dtype, shape, (struct fill){.kind = FILL_NONE});
}

/* Entry `step` along the first axis of a value of `before`. */
static int at_step(const struct augru *a, int value, int step)
{
    return op2(a->body, "Gather", inner_capture(a->body, a->before, value), step);
}

static void build_body(struct augru *a)
{
    struct graph *g = a->body;
    int64_t h = a->s.hidden, b = a->s.batch, axis = 1;
    int step = formal(g, "step", DTYPE_I64, shape_scalar());
    int on = formal(g, "on", DTYPE_BOOL, shape_scalar());
    int state = formal(g, "state", DTYPE_F32, shape_of(b, h));
    int x = at_step(a, a->projected, step), going = at_step(a, a->alive, step);
    int attention = at_step(a, a->attention, step);
    int gates_r = inner_capture(g, a->before, a->gates_r);
    int gates_bias = inner_capture(g, a->before, a->gates_bias);
    int candidate_r = inner_capture(g, a->before, a->candidate_r);
    int candidate_bias = inner_capture(g, a->before, a->candidate_bias);

    int sum = op2(g, "Add", op2(g, "MatMul", state, gates_r), gates_bias);
    int gates = op1(g, "Sigmoid", op2(g, "Add", part(g, x, 1, 0, 2 * h), sum));
    int keep = op2(g, "Sub", graph_const_f32(g, 1), attention);
    keep = op2(g, "Unsqueeze", keep, graph_const_i64(g, 1, &axis));
    int z = op2(g, "Mul", part(g, gates, 1, 0, h), keep);
    int reset = op2(g, "Mul", part(g, gates, 1, h, 2 * h), state);
    sum = op2(g, "Add", op2(g, "MatMul", reset, candidate_r), candidate_bias);
    int candidate = op1(g, "Tanh", op2(g, "Add", part(g, x, 1, 2 * h, GATES * h), sum));
    int fresh = op2(g, "Mul", op2(g, "Sub", graph_const_f32(g, 1), z), candidate);
    int next = op2(g, "Add", fresh, op2(g, "Mul", z, state));
    int none = graph_const_f32(g, 0);
    graph_output(g, op1(g, "Identity", on));
    graph_output(g, graph_node(g, "Where", NULL, INPUTS(going, next, state), NO_ATTRS));
    graph_output(g, graph_node(g, "Where", NULL, INPUTS(going, next, none), NO_ATTRS));
}

static enum status export_loop(const struct augru *a, const char *const *names, struct error *err)
{
    const struct value *v = a->before->values;
    struct exporter *x = a->form->x;
    const char *inputs[] = {v[a->steps].name, v[a->always].name, v[a->state].name};
    const char *outputs[] = {names[0], names[1]};
    struct form loop = {.x = x,
                        .inputs = inputs,
                        .outputs = outputs,
                        .input_count = ARRAY_COUNT(inputs),
                        .output_count = ARRAY_COUNT(outputs)};
    TRY(inner_body(x, a->body, ARRAY_COUNT(inputs), &loop.body, err));
    return export_form(&loop, "Loop", err);
}

/* y [T, 1, B, H] and y_h [1, B, H]. */
static enum status export_results(const struct augru *a, const char *const *names,
                                  struct error *err)
{
    const struct form *f = a->form;
    struct shape state = shape_of(a->s.batch, a->s.hidden);
    struct shape all = shape_of(a->s.steps, a->s.batch, a->s.hidden);
    struct graph *g = a->after;
    int64_t first = 0, second = 1;
    int last = formal(g, names[0], DTYPE_F32, state), y = formal(g, names[1], DTYPE_F32, all);
    graph_output(g, op2(g, "Unsqueeze", y, graph_const_i64(g, 1, &second)));
    graph_output(g, op2(g, "Unsqueeze", last, graph_const_i64(g, 1, &first)));
    const char *outputs[] = {f->outputs[0], f->output_count > 1 ? f->outputs[1] : NULL};
    return inner_inline(f->x, g, outputs, err);
}

enum status export_augru(const struct form *f, struct error *err)
{
    const struct graph *g = f->x->g;
    struct augru a = {.form = f};
    struct arena *arena = &f->x->arena;
    const char *base = g->values[f->node->outputs[f->node->outputs[0] == NONE]].name;
    TRY(rnn_shape_from(f->node, GATES, &g->values[f->node->inputs[RNN_X]].shape,
                       &g->values[f->node->inputs[RNN_R]].shape, &a.s, err));
    if (a.s.batch_first)
        return UNSUPPORTED(err, "AUGRU with layout 1 has no form in ONNX");
    const char *names[] = {arena_printf(arena, "%s:last", base),
                           arena_printf(arena, "%s:all", base)};
    a.before = inner_new(f->x, arena_printf(arena, "%s:before", base));
    a.body = inner_new(f->x, arena_printf(arena, "%s:step", base));
    a.after = inner_new(f->x, arena_printf(arena, "%s:after", base));
    if (!names[0] || !names[1] || !a.before || !a.body || !a.after)
        return FAIL_NO_MEMORY(err);
    build_before(&a);
    TRY(inner_inline(f->x, a.before, NULL, err));
    build_body(&a);
    TRY(export_loop(&a, names, err));
    return export_results(&a, names, err);
}
