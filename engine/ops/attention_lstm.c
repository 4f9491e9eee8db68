/* SPDX-License-Identifier: Apache-2.0
 * AttentionLSTM (ridge): an LSTM that after each step asks a source sentence, and is given the
 * answer, its context, in the next one: the first layer of a recurrent translator whose words are
 * given, as while it is trained (Wu et al. 2016; AttentionDecoder chooses the words). Of step t
 *     sums = X[t] + [context, h] W;  c = f c + i g;  h = o tanh(c)
 *     shares = softmax over words s of SCORE tanh(KEYS[s] + h QUERY);  context = sum shares MEMORY
 * where the first context is zero, and words from LENGTHS on get nothing. Without KEYS and what
 * follows them it is a plain LSTM with weights as AttentionDecoder has them.
 *
 * Inputs and outputs: engine/ops/lib/attention_lstm.h. The outputs from CELLS on, but for the
 * context, are there for the gradient: nothing else may depend on them where it is taken. */
#include "engine/ops/lib/attention_lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/family/gradient.h"

static enum status infer(const struct infer *c, struct error *err)
{
    struct attention_lstm s;
    TRY(attention_lstm_infer(c, &s, err));
    if (!infer_has(c, ALSTM_H))
        return FAIL(err, STATUS_FAILED, "AttentionLSTM: the initial state is absent");
    struct shape each = shape_of(s.steps, s.batch, s.hidden);
    struct shape context = shape_of(s.steps, s.batch, s.context);
    struct shape shares = shape_of(s.steps, s.batch, s.source);
    enum dtype dtype = c->in[ALSTM_X]->dtype;
    infer_set(c, ALSTM_OUT_Y, dtype, &each);
    infer_set(c, ALSTM_OUT_CELLS, dtype, &each);
    infer_set(c, ALSTM_OUT_CONTEXT, dtype, &context);
    infer_set(c, ALSTM_OUT_SHARES, dtype, &shares);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct attention_lstm s;
    if (attention_lstm_infer(c, &s, NULL) != STATUS_OK)
        return;
    double turns = (double)(s.steps * s.batch), h = (double)s.hidden, context = (double)s.context;
    double source = (double)s.source, keys = (double)s.keys;
    cost->macs = turns * ((context + h) * 4 * h + h * keys + source * (keys + context));
    cost->elementwise = turns * (30 * h + source * (6 * keys + 5));
    cost->transcendentals = turns * (5 * h + source * (keys + 1));
}

/* ---- reference ---- */

struct run {
    const struct ref_call *call;
    struct attention_lstm s;
    double *state, *memory; /* [B, C + H], [B, H] */
    double *gates, *asked;  /* [B, 4 H], [B, A] */
    double *shares;         /* [S] */
};

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static const double *input(const struct run *r, int k)
{
    return r->call->in[k]->f;
}

static double *output(const struct run *r, int k)
{
    return k < r->call->out_count && r->call->out[k] ? r->call->out[k]->f : NULL;
}

/* c [B, n] += a [B, k] b; rows of a are a_row apart. */
static void multiply(const struct run *r, const double *a, int64_t a_row, int64_t k,
                     const double *b, int64_t n, double *c)
{
    struct ref_gemm product = {.m = r->s.batch,
                               .n = n,
                               .k = k,
                               .a = a,
                               .a_row = a_row,
                               .a_col = 1,
                               .b = b,
                               .b_row = n,
                               .b_col = 1,
                               .c = c,
                               .c_row = n};
    ref_gemm_run(r->call->pool, &product, 1);
}

static void run_cell(const struct run *r, int64_t t, int64_t b)
{
    int64_t n = r->s.hidden, at = (t * r->s.batch + b) * n;
    const double *gate = r->gates + b * 4 * n;
    double *h = r->state + b * (r->s.context + n) + r->s.context, *c = r->memory + b * n;
    double *y = output(r, ALSTM_OUT_Y), *cells = output(r, ALSTM_OUT_CELLS);
    for (int64_t k = 0; k < n; k++) {
        c[k] = logistic(gate[2 * n + k]) * c[k] + logistic(gate[k]) * tanh(gate[n + k]);
        h[k] = logistic(gate[3 * n + k]) * tanh(c[k]);
        if (y)
            y[at + k] = h[k];
        if (cells)
            cells[at + k] = c[k];
    }
}

static void attend(const struct run *r, int64_t t, int64_t b)
{
    const struct attention_lstm *s = &r->s;
    int64_t length = attention_lstm_length(s, r->call->in[ALSTM_LENGTHS]->i[b]);
    int64_t at = t * s->batch + b;
    const double *v = input(r, ALSTM_SCORE), *asked = r->asked + b * s->keys;
    const double *memory = input(r, ALSTM_MEMORY) + b * s->source * s->context;
    double *context = r->state + b * (s->context + s->hidden), largest = -INFINITY, sum = 0;
    double *all = output(r, ALSTM_OUT_SHARES), *contexts = output(r, ALSTM_OUT_CONTEXT);
    for (int64_t w = 0; w < length; w++) {
        const double *key = input(r, ALSTM_KEYS) + (b * s->source + w) * s->keys;
        r->shares[w] = 0;
        for (int64_t k = 0; k < s->keys; k++)
            r->shares[w] += v[k] * tanh(key[k] + asked[k]);
        largest = fmax(largest, r->shares[w]);
    }
    for (int64_t w = 0; w < length; w++)
        sum += r->shares[w] = exp(r->shares[w] - largest);
    memset(context, 0, (size_t)s->context * sizeof(*context));
    for (int64_t w = 0; w < length; w++) {
        r->shares[w] /= sum;
        for (int64_t k = 0; k < s->context; k++)
            context[k] += r->shares[w] * memory[w * s->context + k];
    }
    if (all)
        memcpy(all + at * s->source, r->shares, (size_t)length * sizeof(*all));
    if (contexts)
        memcpy(contexts + at * s->context, context, (size_t)s->context * sizeof(*contexts));
}

static void run_steps(const struct run *r)
{
    const struct attention_lstm *s = &r->s;
    int64_t n = s->hidden, wide = s->context + n, sums = s->batch * 4 * n;
    for (int64_t b = 0; b < s->batch; b++)
        memcpy(r->state + b * wide + s->context, input(r, ALSTM_H) + b * n,
               (size_t)n * sizeof(double));
    memcpy(r->memory, input(r, ALSTM_C), (size_t)(s->batch * n) * sizeof(double));
    for (int64_t t = 0; t < s->steps; t++) {
        memcpy(r->gates, input(r, ALSTM_X) + t * sums, (size_t)sums * sizeof(double));
        multiply(r, r->state, wide, wide, input(r, ALSTM_W), 4 * n, r->gates);
        for (int64_t b = 0; b < s->batch; b++)
            run_cell(r, t, b);
        if (!s->attends)
            continue;
        memset(r->asked, 0, (size_t)(s->batch * s->keys) * sizeof(double));
        multiply(r, r->state + s->context, wide, n, input(r, ALSTM_QUERY), s->keys, r->asked);
        for (int64_t b = 0; b < s->batch; b++)
            attend(r, t, b);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct run r = {.call = call};
    TRY(attention_lstm_call(call, &r.s, err));
    size_t rows = (size_t)r.s.batch, n = (size_t)r.s.hidden;
    r.state = calloc(rows * ((size_t)r.s.context + n) + 1, sizeof(double));
    r.memory = calloc(rows * n + 1, sizeof(double));
    r.gates = calloc(rows * 4 * n + 1, sizeof(double));
    r.asked = calloc(rows * (size_t)r.s.keys + 1, sizeof(double));
    r.shares = calloc((size_t)r.s.source + 1, sizeof(double));
    bool fine = r.state && r.memory && r.gates && r.asked && r.shares;
    if (fine)
        run_steps(&r);
    free(r.shares);
    free(r.asked);
    free(r.gates);
    free(r.memory);
    free(r.state);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- gradient ---- */

/* What each step found: `first`, or zeros, and then all of x [T, B, n] but the last. */
static int before(struct graph *g, int first, int x)
{
    struct shape all = gradient_shape(g, x), one = all;
    one.dim[0] = 1;
    int parts[2] = {first == NONE ? make_zeros(g, g->values[x].dtype, &one)
                                  : make_reshaped(g, first, &one)};
    if (all.dim[0] == 1)
        return parts[0];
    static const int64_t zero[RANK_MAX] = {0};
    all.dim[0]--;
    parts[1] = make_slice(g, x, zero, &all);
    return graph_node(g, op_concat.name, NULL, 2, parts, ATTRS(attr_int("axis", 0)));
}

static int rows_of(struct graph *g, int x)
{
    struct shape all = gradient_shape(g, x);
    struct shape rows = shape_of(all.dim[0] * all.dim[1], all.dim[2]);
    return make_reshaped(g, x, &rows);
}

/* a' b */
static int turned_product(struct graph *g, int a, int b)
{
    return graph_node(g, op_gemm.name, NULL, INPUTS(a, b), ATTRS(attr_int("transA", 1)));
}

static int by_memory(struct graph *g, int shares, int by_context)
{
    static const int64_t words[] = {1, 2, 0}, rows[] = {1, 0, 2};
    return make_mat_mul(g, make_permuted(g, shares, 3, words),
                        make_permuted(g, by_context, 3, rows));
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int in[ALSTM_GRADIENT_INPUTS], by[ALSTM_BYS];
    int y = gradient_out(c, ALSTM_OUT_Y), cells = gradient_out(c, ALSTM_OUT_CELLS);
    int context = gradient_out(c, ALSTM_OUT_CONTEXT), shares = gradient_out(c, ALSTM_OUT_SHARES);
    int outputs = gradient_node(c)->output_count;
    for (int k = 0; k < ALSTM_GRADIENT_INPUTS; k++)
        in[k] = k < ALSTM_INPUTS ? gradient_in(c, k) : NONE;
    bool attends = in[ALSTM_KEYS] != NONE;
    if (y == NONE || cells == NONE || (attends && (context == NONE || shares == NONE)))
        return UNSUPPORTED(err, "AttentionLSTM without the outputs that its gradient reads");
    if (c->dy[ALSTM_OUT_CELLS] != NONE ||
        (outputs > ALSTM_OUT_SHARES && c->dy[ALSTM_OUT_SHARES] != NONE))
        return UNSUPPORTED(err, "the gradient of AttentionLSTM by memories and shares");
    int state = rows_of(g, before(g, in[ALSTM_H], y));
    if (attends)
        state =
            graph_node(g, op_concat.name, NULL, INPUTS(rows_of(g, before(g, NONE, context)), state),
                       ATTRS(attr_int("axis", 1)));
    int sums = make_add(g, rows_of(g, in[ALSTM_X]), make_mat_mul(g, state, in[ALSTM_W]));
    int x = in[ALSTM_X], rows = rows_of(g, y);
    in[ALSTM_X] = make_reshaped_as(g, sums, x);
    in[ALSTM_H] = NONE;
    in[ALSTM_CELLS] = cells;
    in[ALSTM_DY] = c->dy[ALSTM_OUT_Y];
    if (attends) {
        struct attention_lstm s = {.steps = gradient_shape(g, x).dim[0],
                                   .batch = gradient_shape(g, x).dim[1],
                                   .keys = gradient_shape(g, in[ALSTM_QUERY]).dim[1]};
        struct shape asked = attention_lstm_shape_by(&s, ALSTM_BY_ASKED);
        in[ALSTM_DCONTEXT] = c->dy[ALSTM_OUT_CONTEXT];
        in[ALSTM_ASKED] = make_reshaped(g, make_mat_mul(g, rows, in[ALSTM_QUERY]), &asked);
        in[ALSTM_SHARES] = shares;
    }
    TRY(graph_node_many(g, op_attention_lstm_gradient.name, NULL, ALSTM_GRADIENT_INPUTS, in,
                        NO_ATTRS, attends ? ALSTM_BYS : ALSTM_BY_C + 1, by));
    c->dx[ALSTM_X] = by[ALSTM_BY_X];
    c->dx[ALSTM_H] = by[ALSTM_BY_H];
    c->dx[ALSTM_C] = by[ALSTM_BY_C];
    if (c->wanted[ALSTM_W])
        c->dx[ALSTM_W] = turned_product(g, state, rows_of(g, by[ALSTM_BY_X]));
    if (!attends)
        return graph_failed(g, err);
    c->dx[ALSTM_KEYS] = by[ALSTM_BY_KEYS];
    c->dx[ALSTM_SCORE] = by[ALSTM_BY_SCORE];
    if (c->wanted[ALSTM_MEMORY])
        c->dx[ALSTM_MEMORY] = by_memory(g, shares, by[ALSTM_BY_CONTEXT]);
    if (c->wanted[ALSTM_QUERY])
        c->dx[ALSTM_QUERY] = turned_product(g, rows, rows_of(g, by[ALSTM_BY_ASKED]));
    return graph_failed(g, err);
}

/* Inputs: X W H C KEYS MEMORY LENGTHS QUERY SCORE. */
static const struct op_case cases[] = {
    {.name = "plain", .inputs = "f32[5,3,28] f32[7,28] f32[3,7] f32[3,7]", .outputs = 2},
    {.name = "one_step", .inputs = "f32[1,2,20] f32[5,20] f32[2,5] f32[2,5]", .outputs = 2},
    {.name = "attention",
     .inputs = "f32[4,2,24] f32[11,24] f32[2,6] f32[2,6] f32[2,7,3] f32[2,7,5] i32[2]=7,4 f32[6,3] "
               "f32[3]",
     .outputs = 4},
    {.name = "attention_one_step",
     .inputs = "f32[1,3,16] f32[8,16] f32[3,4] f32[3,4] f32[3,2,4] f32[3,2,4] i32[3]=1,2,2 "
               "f32[4,4] f32[4]",
     .outputs = 4},
    {.name = "wide",
     .inputs = "f32[3,9,132] f32[53,132]{-0.3:0.3} f32[9,33] f32[9,33] f32[9,13,37] f32[9,13,20] "
               "i32[9]=13,1,5,7,9,11,13,2,4 f32[33,37]{-0.3:0.3} f32[37]",
     .outputs = 4},
};

REGISTER(op, attention_lstm) = {
    .name = "AttentionLSTM",
    .domain = "ridge",
    .inputs_min = ALSTM_C + 1,
    .inputs_max = ALSTM_INPUTS,
    .outputs_max = ALSTM_OUTPUTS,
    .int_inputs = 1u << ALSTM_LENGTHS,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
