/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder as a Loop. What is carried from step to step: word, sum, length and end of every
 * hypothesis, the words so far, the context, and the states of the layers. */
#include <stdlib.h>

#include "engine/ops/lib/decoder.h"
#include "workloads/onnx/export/inner.h"

enum { LAYERS_MAX = 16 };
enum { ITERATION, CONDITION, TOKEN, TOTAL, LENGTH, FINISHED, WORDS, CONTEXT, STATES };
enum { INPUTS_MAX = STATES + 2 * LAYERS_MAX };
#define NEVER (-1e9f)

/* Values of `before` that the body reads. */
struct constants {
    int keys, memory, alive, table, query, score, output;
    int weights[LAYERS_MAX], bias[LAYERS_MAX];
};

struct decoder {
    const struct form *form;
    struct decoder_shape s;
    struct graph *before, *body, *after;
    struct constants outside, inside; /* in `before`, in `body` */
    int start[INPUTS_MAX];            /* in `before`: what the loop begins with */
    int carried[INPUTS_MAX];          /* in `body` */
    int inputs;                       /* of the loop */
};

static int shaped(struct graph *g, int x, int rank, const int64_t *dim)
{
    return op2(g, "Reshape", x, graph_const_i64(g, rank, dim));
}

static int cast(struct graph *g, int x, int64_t to)
{
    return graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", to)));
}

static int column(struct graph *g, int x) /* [n] to [n, 1] */
{
    int64_t axis = 1;
    return op2(g, "Unsqueeze", x, graph_const_i64(g, 1, &axis));
}

static int pick(struct graph *g, int x, int rows, int64_t axis)
{
    return graph_node(g, "Gather", NULL, INPUTS(x, rows), ATTRS(attr_int("axis", axis)));
}

static int capture(const struct decoder *d, int input)
{
    return inner_capture(d->before, d->form->x->g, d->form->node->inputs[input]);
}

/* 0, 1, ... divided by `each`. */
static int counting(struct graph *g, int64_t count, int64_t each)
{
    int64_t *data = calloc((size_t)count + 1, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < count; k++)
            data[k] = k / each;
    int value = data ? graph_const_i64(g, (int)count, data) : NONE;
    free(data);
    return value;
}

/* ---- before the loop ---- */

static int everywhere(struct graph *g, enum dtype dtype, const void *one, int rank,
                      const int64_t *dim)
{
    int scalar = graph_const(g, NULL, dtype, shape_scalar(), one);
    return op2(g, "Expand", scalar, graph_const_i64(g, rank, dim));
}

static int first_totals(struct graph *g, const struct decoder_shape *s)
{
    float total[DECODER_BEAM_MAX];
    for (int64_t k = 0; k < s->beam; k++)
        total[k] = k ? NEVER : 0;
    int one = graph_const(g, NULL, DTYPE_F32, shape_of(1, s->beam), total);
    int all = op2(g, "Expand", one, graph_const_i64(g, 2, (int64_t[]){s->batch, s->beam}));
    return shaped(g, all, 1, &s->rows);
}

static void start_values(struct decoder *d)
{
    const struct decoder_shape *s = &d->s;
    struct graph *g = d->before;
    int64_t words[] = {s->rows, s->steps}, states[] = {s->rows, s->hidden};
    int64_t start = s->start, end = s->end;
    uint8_t yes = 1, no = 0;
    float zero = 0;
    int sentence = counting(g, s->rows, s->beam);
    int h = capture(d, DECODER_H), c = capture(d, DECODER_C);
    d->start[ITERATION] = op1(g, "Identity", graph_const_i64(g, -1, &s->steps));
    d->start[CONDITION] =
        op1(g, "Identity", graph_const(g, NULL, DTYPE_BOOL, shape_scalar(), &yes));
    d->start[TOKEN] = everywhere(g, DTYPE_I64, &start, 1, &s->rows);
    d->start[TOTAL] = first_totals(g, s);
    d->start[LENGTH] = everywhere(g, DTYPE_F32, &zero, 1, &s->rows);
    d->start[FINISHED] = everywhere(g, DTYPE_BOOL, &no, 1, &s->rows);
    d->start[WORDS] = everywhere(g, DTYPE_I64, &end, 2, words);
    d->start[CONTEXT] = everywhere(g, DTYPE_F32, &zero, 2, states);
    for (int64_t k = 0; k < s->layers; k++) {
        int layer = graph_const_i64(g, -1, &k);
        d->start[STATES + 2 * k] = pick(g, pick(g, h, layer, 0), sentence, 0);
        d->start[STATES + 2 * k + 1] = pick(g, pick(g, c, layer, 0), sentence, 0);
    }
}

static void fixed_values(struct decoder *d)
{
    const struct decoder_shape *s = &d->s;
    struct graph *g = d->before;
    struct constants *o = &d->outside;
    int sentence = counting(g, s->rows, s->beam);
    int lengths = cast(g, capture(d, DECODER_LENGTHS), 7); /* i64 */
    int keys = op2(g, "Add", capture(d, DECODER_KEYS), capture(d, DECODER_SHIFT));
    int weights = capture(d, DECODER_WEIGHTS), bias = capture(d, DECODER_BIAS);
    o->keys = pick(g, keys, sentence, 0);
    o->memory = pick(g, capture(d, DECODER_MEMORY), sentence, 0);
    o->alive = op2(g, "Less", counting(g, s->source, 1), column(g, pick(g, lengths, sentence, 0)));
    o->table = capture(d, DECODER_EMBEDDING);
    o->query = capture(d, DECODER_QUERY);
    o->score = column(g, capture(d, DECODER_SCORE));
    o->output = capture(d, DECODER_OUTPUT);
    for (int64_t k = 0; k < s->layers; k++) {
        int layer = graph_const_i64(g, -1, &k);
        o->weights[k] = pick(g, weights, layer, 0);
        o->bias[k] = pick(g, bias, layer, 0);
    }
}

static enum status build_before(struct decoder *d, struct error *err)
{
    const struct constants *o = &d->outside;
    start_values(d);
    fixed_values(d);
    for (int k = 0; k < d->inputs; k++)
        graph_output(d->before, d->start[k]);
    const int kept[] = {o->keys, o->memory, o->alive, o->score};
    for (int k = 0; k < ARRAY_COUNT(kept); k++)
        graph_output(d->before, kept[k]);
    for (int64_t k = 0; k < d->s.layers; k++) {
        graph_output(d->before, o->weights[k]);
        graph_output(d->before, o->bias[k]);
    }
    return inner_inline(d->form->x, d->before, NULL, err);
}

/* ---- a step ---- */

static void formal_inputs(struct decoder *d)
{
    struct fill none = {.kind = FILL_NONE};
    for (int k = 0; k < d->inputs; k++) {
        const struct value *v = &d->before->values[d->start[k]];
        d->carried[k] = graph_input(d->body, NULL, v->dtype, v->shape, none);
    }
}

static void captured_inputs(struct decoder *d)
{
    const struct constants *o = &d->outside;
    struct constants *i = &d->inside;
    i->keys = inner_capture(d->body, d->before, o->keys);
    i->memory = inner_capture(d->body, d->before, o->memory);
    i->alive = inner_capture(d->body, d->before, o->alive);
    i->table = inner_capture(d->body, d->before, o->table);
    i->query = inner_capture(d->body, d->before, o->query);
    i->score = inner_capture(d->body, d->before, o->score);
    i->output = inner_capture(d->body, d->before, o->output);
    for (int64_t k = 0; k < d->s.layers; k++) {
        i->weights[k] = inner_capture(d->body, d->before, o->weights[k]);
        i->bias[k] = inner_capture(d->body, d->before, o->bias[k]);
    }
}

/* Replaces the carried states of the layer; returns its output. */
static int layer(struct decoder *d, int64_t k, int x, int context)
{
    struct graph *g = d->body;
    int *h = &d->carried[STATES + 2 * k], *c = h + 1, gate[4];
    int all = graph_node(g, "Concat", NULL, INPUTS(x, context, *h), ATTRS(attr_int("axis", 1)));
    all = op2(g, "Add", op2(g, "MatMul", all, d->inside.weights[k]), d->inside.bias[k]);
    int64_t w = d->s.hidden, sizes[] = {w, w, w, w};
    graph_node_many(g, "Split", NULL, INPUTS(all, graph_const_i64(g, 4, sizes)),
                    ATTRS(attr_int("axis", 1)), 4, gate);
    int forget = op2(g, "Add", gate[2], graph_const_f32(g, (float)d->s.forget_bias));
    int kept = op2(g, "Mul", op1(g, "Sigmoid", forget), *c);
    int fresh = op2(g, "Mul", op1(g, "Sigmoid", gate[0]), op1(g, "Tanh", gate[1]));
    *c = op2(g, "Add", kept, fresh);
    *h = op2(g, "Mul", op1(g, "Sigmoid", gate[3]), op1(g, "Tanh", *c));
    return k >= d->s.residual ? op2(g, "Add", *h, x) : *h;
}

static int attend(const struct decoder *d, int state)
{
    const struct decoder_shape *s = &d->s;
    struct graph *g = d->body;
    int64_t scores[] = {s->rows, s->source}, one[] = {s->rows, 1, s->source};
    int64_t context[] = {s->rows, s->hidden};
    int query = column(g, op2(g, "MatMul", state, d->inside.query));
    int x = op1(g, "Tanh", op2(g, "Add", d->inside.keys, query));
    x = shaped(g, op2(g, "MatMul", x, d->inside.score), 2, scores);
    x = op3(g, "Where", d->inside.alive, x, graph_const_f32(g, NEVER));
    x = graph_node(g, "Softmax", NULL, INPUTS(x), ATTRS(attr_int("axis", 1)));
    x = op2(g, "MatMul", shaped(g, x, 3, one), d->inside.memory);
    return shaped(g, x, 2, context);
}

static void take_words(struct decoder *d, int token)
{
    struct graph *g = d->body;
    int *now = d->carried;
    int here = op2(g, "Equal", counting(g, d->s.steps, 1), now[ITERATION]);
    now[WORDS] = op3(g, "Where", here, column(g, token), now[WORDS]);
    now[TOKEN] = token;
}

static void choose_greedy(struct decoder *d, int logits)
{
    struct graph *g = d->body;
    int *now = d->carried;
    int64_t end = d->s.end;
    int last = graph_const_i64(g, -1, &end);
    int best = graph_node(g, "ArgMax", NULL, INPUTS(logits),
                          ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    int gain = graph_node(g, "ReduceMax", NULL, INPUTS(logits),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    gain = op3(g, "Where", now[FINISHED], graph_const_f32(g, 0), gain);
    take_words(d, op3(g, "Where", now[FINISHED], last, best));
    now[TOTAL] = op2(g, "Add", now[TOTAL], gain);
    now[FINISHED] = op2(g, "Or", now[FINISHED], op2(g, "Equal", now[TOKEN], last));
}

/* ((5 + length) / 6)^penalty */
static int divisor(struct graph *g, const struct decoder_shape *s, int length)
{
    int base = op2(g, "Add", length, graph_const_f32(g, 5));
    base = op2(g, "Div", base, graph_const_f32(g, 6));
    return op2(g, "Pow", base, graph_const_f32(g, (float)s->length_penalty));
}

/* [1, V]: one number for the last word, another one for all others. */
static int by_word(struct graph *g, const struct decoder_shape *s, float last, float others)
{
    float *data = malloc((size_t)(s->vocabulary + 1) * sizeof(*data));
    if (data)
        for (int64_t w = 0; w < s->vocabulary; w++)
            data[w] = w == s->end ? last : others;
    int value = data ? graph_const(g, NULL, DTYPE_F32, shape_of(1, s->vocabulary), data) : NONE;
    free(data);
    return value;
}

/* Sums [B, beam V] of every way of going on, and the best of them, [B, beam]. */
static int rank_words(struct decoder *d, int logits, int *totals)
{
    const struct decoder_shape *s = &d->s;
    struct graph *g = d->body;
    const int *now = d->carried;
    int64_t sentence[] = {s->batch, s->beam * s->vocabulary};
    int finished = column(g, now[FINISHED]);
    int going = cast(g, op1(g, "Not", finished), 1); /* f32 */
    int gain = graph_node(g, "LogSoftmax", NULL, INPUTS(logits), ATTRS(attr_int("axis", 1)));
    gain = op3(g, "Where", finished, by_word(g, s, 0, NEVER), gain);
    int sum = op2(g, "Add", column(g, now[TOTAL]), gain);
    int length = op2(g, "Mul", going, by_word(g, s, 0, 1));
    length = op2(g, "Add", column(g, now[LENGTH]), length);
    int score = shaped(g, op2(g, "Div", sum, divisor(g, s, length)), 2, sentence);
    int best[2];
    *totals = shaped(g, sum, 2, sentence);
    graph_node_many(g, "TopK", NULL, INPUTS(score, graph_const_i64(g, 1, &s->beam)),
                    ATTRS(attr_int("axis", 1)), 2, best);
    return best[1];
}

static void choose_beam(struct decoder *d, int logits)
{
    const struct decoder_shape *s = &d->s;
    struct graph *g = d->body;
    int *now = d->carried, totals, index = rank_words(d, logits, &totals);
    int64_t end = s->end;
    int words = graph_const_i64(g, -1, &s->vocabulary), last = graph_const_i64(g, -1, &end);
    int row = op2(g, "Div", index, words);
    int token = shaped(g, op2(g, "Sub", index, op2(g, "Mul", row, words)), 1, &s->rows);
    int first = op2(g, "Mul", counting(g, s->batch, 1), graph_const_i64(g, -1, &s->beam));
    int parent = shaped(g, op2(g, "Add", row, column(g, first)), 1, &s->rows);
    int total =
        graph_node(g, "GatherElements", NULL, INPUTS(totals, index), ATTRS(attr_int("axis", 1)));
    int over = pick(g, now[FINISHED], parent, 0), ends = op2(g, "Equal", token, last);
    int longer = op1(g, "Not", op2(g, "Or", over, ends));
    now[TOTAL] = shaped(g, total, 1, &s->rows);
    now[LENGTH] = op2(g, "Add", pick(g, now[LENGTH], parent, 0), cast(g, longer, 1));
    now[FINISHED] = op2(g, "Or", over, ends);
    now[WORDS] = pick(g, now[WORDS], parent, 0);
    for (int k = CONTEXT; k < d->inputs; k++)
        now[k] = pick(g, now[k], parent, 0);
    take_words(d, token);
}

static void build_body(struct decoder *d)
{
    struct graph *g = d->body;
    formal_inputs(d);
    captured_inputs(d);
    int x = pick(g, d->inside.table, d->carried[TOKEN], 0);
    x = layer(d, 0, x, d->carried[CONTEXT]);
    int context = attend(d, d->carried[STATES]);
    d->carried[CONTEXT] = context;
    for (int64_t k = 1; k < d->s.layers; k++)
        x = layer(d, k, x, context);
    int logits = op2(g, "MatMul", x, d->inside.output);
    if (d->s.beam > 1)
        choose_beam(d, logits);
    else
        choose_greedy(d, logits);
    int all = graph_node(g, "ReduceMin", NULL, INPUTS(cast(g, d->carried[FINISHED], 1)),
                         ATTRS(attr_int("keepdims", 0)));
    graph_output(g, op2(g, "Less", all, graph_const_f32(g, 0.5f)));
    for (int k = TOKEN; k < d->inputs; k++) {
        bool same = g->failed || g->values[d->carried[k]].kind == VALUE_INPUT;
        graph_output(g, same ? op1(g, "Identity", d->carried[k]) : d->carried[k]);
    }
}

/* ---- the loop and what follows ---- */

static enum status export_loop(struct decoder *d, const char **results, struct error *err)
{
    struct exporter *x = d->form->x;
    const char *inputs[INPUTS_MAX];
    for (int k = 0; k < d->inputs; k++) {
        inputs[k] = d->before->values[d->start[k]].name;
        results[k] = arena_printf(&x->arena, "%s:loop%d", d->before->name, k);
        if (!results[k])
            return FAIL_NO_MEMORY(err);
    }
    struct form loop = {.x = x,
                        .inputs = inputs,
                        .outputs = results + TOKEN,
                        .input_count = d->inputs,
                        .output_count = d->inputs - TOKEN};
    build_body(d);
    TRY(inner_body(x, d->body, d->inputs, &loop.body, err));
    return export_form(&loop, "Loop", err);
}

static enum status export_results(const struct decoder *d, const char *const *results,
                                  struct error *err)
{
    const struct decoder_shape *s = &d->s;
    const struct form *f = d->form;
    struct graph *g = d->after;
    struct fill none = {.kind = FILL_NONE};
    int64_t words[] = {s->batch, s->beam, s->steps}, scores[] = {s->batch, s->beam};
    int word = graph_input(g, results[WORDS], DTYPE_I64, shape_of(s->rows, s->steps), none);
    int total = graph_input(g, results[TOTAL], DTYPE_F32, shape_of(s->rows), none);
    int length = graph_input(g, results[LENGTH], DTYPE_F32, shape_of(s->rows), none);
    graph_output(g, shaped(g, cast(g, word, 6), 3, words)); /* i32 */
    if (s->beam > 1)
        total = op2(g, "Div", total, divisor(g, s, length));
    graph_output(g, shaped(g, total, 2, scores));
    const char *outputs[] = {f->outputs[0], f->output_count > 1 ? f->outputs[1] : NULL};
    return inner_inline(f->x, g, outputs, err);
}

enum status export_decoder(const struct form *f, struct error *err)
{
    struct decoder d = {.form = f};
    const struct graph *g = f->x->g;
    const struct shape *in[DECODER_INPUTS];
    const char *results[INPUTS_MAX];
    struct arena *arena = &f->x->arena;
    const char *base = g->values[f->node->outputs[f->node->outputs[0] == NONE]].name;
    for (int k = 0; k < DECODER_INPUTS; k++)
        in[k] = &g->values[f->node->inputs[k]].shape;
    TRY(decoder_shape_from(f->node, in, &d.s, err));
    if (d.s.layers > LAYERS_MAX)
        return UNSUPPORTED(err, "a decoder of more than %d layers", LAYERS_MAX);
    d.inputs = STATES + 2 * (int)d.s.layers;
    d.before = inner_new(f->x, arena_printf(arena, "%s:before", base));
    d.body = inner_new(f->x, arena_printf(arena, "%s:step", base));
    d.after = inner_new(f->x, arena_printf(arena, "%s:after", base));
    if (!d.before || !d.body || !d.after)
        return FAIL_NO_MEMORY(err);
    TRY(build_before(&d, err));
    TRY(export_loop(&d, results, err));
    return export_results(&d, results, err);
}
