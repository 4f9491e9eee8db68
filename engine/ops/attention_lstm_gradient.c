/* SPDX-License-Identifier: Apache-2.0
 * AttentionLSTMGradient (ridge): AttentionLSTM back through time. Inputs and outputs:
 * engine/ops/lib/attention_lstm.h. What products over all steps can make of its results, such as
 * the gradients by weights, is left to them (AttentionLSTM's rule). Of step t, where d is the
 * gradient by its context, and u = tanh(KEYS[s] + ASKED):
 *     dscore[s] = shares[s] (d MEMORY[s] - sum shares d MEMORY)
 *     dASKED = sum over s of dscore[s] SCORE (1 - u^2), which is each word's part of dKEYS, too
 * then the state's gradient gets dASKED QUERY', the cell gives that of the sums, and dsums W' is
 * what context and state of the step before get. */
#include "engine/ops/lib/attention_lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/compute/ref_gemm.h"

static enum status check(const struct infer *c, int input, bool must, struct shape want,
                         struct error *err)
{
    char text[96], text_want[96];
    if (!infer_has(c, input) && !must)
        return STATUS_OK;
    if (infer_has(c, input) && shape_equal(&c->in[input]->shape, &want))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "AttentionLSTMGradient: input %d is %s, not %s", input,
                infer_has(c, input) ? shape_text(&c->in[input]->shape, text) : "absent",
                shape_text(&want, text_want));
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct attention_lstm s;
    TRY(attention_lstm_infer(c, &s, err));
    TRY(check(c, ALSTM_CELLS, true, shape_of(s.steps, s.batch, s.hidden), err));
    TRY(check(c, ALSTM_DY, false, shape_of(s.steps, s.batch, s.hidden), err));
    TRY(check(c, ALSTM_DCONTEXT, false, shape_of(s.steps, s.batch, s.context), err));
    TRY(check(c, ALSTM_ASKED, s.attends, shape_of(s.steps, s.batch, s.keys), err));
    TRY(check(c, ALSTM_SHARES, s.attends, shape_of(s.steps, s.batch, s.source), err));
    if (!infer_has(c, ALSTM_X) || !infer_has(c, ALSTM_C))
        return FAIL(err, STATUS_FAILED, "AttentionLSTMGradient: sums or memories are absent");
    if (c->out_count > ALSTM_BY_CONTEXT && !s.attends)
        return FAIL(err, STATUS_FAILED, "AttentionLSTMGradient: there are no contexts");
    for (int k = 0; k < ALSTM_BYS; k++) {
        struct shape shape = attention_lstm_shape_by(&s, k);
        infer_set(c, k, c->in[ALSTM_X]->dtype, &shape);
    }
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct attention_lstm s;
    if (attention_lstm_infer(c, &s, NULL) != STATUS_OK)
        return;
    double turns = (double)(s.steps * s.batch), h = (double)s.hidden, context = (double)s.context;
    double source = (double)s.source, keys = (double)s.keys;
    cost->macs = turns * ((context + h) * 4 * h + h * keys + source * context);
    cost->elementwise = turns * (44 * h + source * (13 * keys + 4));
    cost->transcendentals = turns * (5 * h + source * keys);
}

/* ---- reference ---- */

struct run {
    const struct ref_call *call;
    struct attention_lstm s;
    double *by_state, *by_c;    /* [B, C + H], what the step after handed back; [B, H] */
    double *by_sums, *by_asked; /* [B, 4 H], [B, A]: of this step */
    double *by_score;           /* [A] */
};

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static const double *input(const struct run *r, int k)
{
    return k < r->call->in_count && r->call->in[k] ? r->call->in[k]->f : NULL;
}

static double *output(const struct run *r, int k)
{
    return k < r->call->out_count && r->call->out[k] ? r->call->out[k]->f : NULL;
}

/* c [B, n] += a [B, k] b', where b is [n, k]; rows of c are c_row apart. */
static void multiply(const struct run *r, const double *a, int64_t k, const double *b, int64_t n,
                     double *c, int64_t c_row)
{
    struct ref_gemm product = {.m = r->s.batch,
                               .n = n,
                               .k = k,
                               .a = a,
                               .a_row = k,
                               .a_col = 1,
                               .b = b,
                               .b_row = 1,
                               .b_col = k,
                               .c = c,
                               .c_row = c_row};
    ref_gemm_run(r->call->pool, &product, 1);
}

static void back_word(const struct run *r, int64_t t, int64_t b, int64_t word, double by_word)
{
    const struct attention_lstm *s = &r->s;
    int64_t at = (b * s->source + word) * s->keys;
    const double *key = input(r, ALSTM_KEYS) + at, *v = input(r, ALSTM_SCORE);
    const double *asked = input(r, ALSTM_ASKED) + (t * s->batch + b) * s->keys;
    double *by_keys = output(r, ALSTM_BY_KEYS), *by_asked = r->by_asked + b * s->keys;
    for (int64_t k = 0; k < s->keys; k++) {
        double u = tanh(key[k] + asked[k]), by = by_word * v[k] * (1 - u * u);
        by_asked[k] += by;
        r->by_score[k] += by_word * u;
        if (by_keys)
            by_keys[at + k] += by;
    }
}

/* d: the gradient by the context of sentence b after step t. */
static void back_attention(const struct run *r, int64_t t, int64_t b, const double *d)
{
    const struct attention_lstm *s = &r->s;
    int64_t length = attention_lstm_length(s, r->call->in[ALSTM_LENGTHS]->i[b]);
    const double *shares = input(r, ALSTM_SHARES) + (t * s->batch + b) * s->source;
    const double *memory = input(r, ALSTM_MEMORY) + b * s->source * s->context;
    double mean = 0;
    for (int64_t pass = 0; pass < 2; pass++)
        for (int64_t w = 0; w < length; w++) {
            double by_share = 0;
            for (int64_t k = 0; k < s->context; k++)
                by_share += d[k] * memory[w * s->context + k];
            if (pass == 0)
                mean += shares[w] * by_share;
            else
                back_word(r, t, b, w, shares[w] * (by_share - mean));
        }
}

/* The state's gradient is whole; it becomes that of the sums. */
static void back_cell(const struct run *r, int64_t t, int64_t b)
{
    int64_t n = r->s.hidden, at = t * r->s.batch + b;
    const double *sum = input(r, ALSTM_X) + at * 4 * n, *now = input(r, ALSTM_CELLS) + at * n;
    const double *last = t ? now - r->s.batch * n : input(r, ALSTM_C) + b * n;
    const double *by_h = r->by_state + b * (r->s.context + n) + r->s.context;
    double *by_c = r->by_c + b * n, *by = r->by_sums + b * 4 * n;
    for (int64_t k = 0; k < n; k++) {
        double i = logistic(sum[k]), g = tanh(sum[n + k]), f = logistic(sum[2 * n + k]);
        double o = logistic(sum[3 * n + k]), seen = tanh(now[k]);
        double dc = by_c[k] + by_h[k] * o * (1 - seen * seen);
        by[k] = dc * g * i * (1 - i);
        by[n + k] = dc * i * (1 - g * g);
        by[2 * n + k] = dc * last[k] * f * (1 - f);
        by[3 * n + k] = by_h[k] * seen * o * (1 - o);
        by_c[k] = dc * f;
    }
}

static void add(double *to, const double *from, int64_t count)
{
    for (int64_t k = 0; from && k < count; k++)
        to[k] += from[k];
}

static void copy(double *to, const double *from, int64_t count)
{
    if (to)
        memcpy(to, from, (size_t)count * sizeof(*to));
}

static double *of_step(double *all, int64_t t, int64_t each)
{
    return all ? all + t * each : NULL;
}

static void back_step(const struct run *r, int64_t t)
{
    const struct attention_lstm *s = &r->s;
    int64_t n = s->hidden, wide = s->context + n, rows = s->batch;
    const double *dy = input(r, ALSTM_DY), *dcontext = input(r, ALSTM_DCONTEXT);
    double *by_context = output(r, ALSTM_BY_CONTEXT);
    memset(r->by_asked, 0, (size_t)(rows * s->keys) * sizeof(double));
    for (int64_t b = 0; b < rows; b++) {
        double *d = r->by_state + b * wide;
        int64_t at = t * rows + b;
        add(d, dcontext ? dcontext + at * s->context : NULL, s->context);
        add(d + s->context, dy ? dy + at * n : NULL, n);
        copy(of_step(by_context, at, s->context), d, s->context);
        if (s->attends)
            back_attention(r, t, b, d);
    }
    if (s->attends)
        multiply(r, r->by_asked, s->keys, input(r, ALSTM_QUERY), n, r->by_state + s->context, wide);
    for (int64_t b = 0; b < rows; b++)
        back_cell(r, t, b);
    memset(r->by_state, 0, (size_t)(rows * wide) * sizeof(double));
    multiply(r, r->by_sums, 4 * n, input(r, ALSTM_W), wide, r->by_state, wide);
    copy(of_step(output(r, ALSTM_BY_X), t, rows * 4 * n), r->by_sums, rows * 4 * n);
    copy(of_step(output(r, ALSTM_BY_ASKED), t, rows * s->keys), r->by_asked, rows * s->keys);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct run r = {.call = call};
    TRY(attention_lstm_call(call, &r.s, err));
    size_t rows = (size_t)r.s.batch, n = (size_t)r.s.hidden, wide = (size_t)r.s.context + n;
    r.by_state = calloc(rows * wide + 1, sizeof(double));
    r.by_c = calloc(rows * n + 1, sizeof(double));
    r.by_sums = calloc(rows * 4 * n + 1, sizeof(double));
    r.by_asked = calloc(rows * (size_t)r.s.keys + 1, sizeof(double));
    r.by_score = calloc((size_t)r.s.keys + 1, sizeof(double));
    bool fine = r.by_state && r.by_c && r.by_sums && r.by_asked && r.by_score;
    for (int64_t t = r.s.steps - 1; fine && t >= 0; t--)
        back_step(&r, t);
    for (size_t b = 0; fine && b < rows; b++)
        copy(of_step(output(&r, ALSTM_BY_H), (int64_t)b, r.s.hidden),
             r.by_state + b * wide + r.s.context, r.s.hidden);
    if (fine) {
        copy(output(&r, ALSTM_BY_C), r.by_c, r.s.batch * r.s.hidden);
        copy(output(&r, ALSTM_BY_SCORE), r.by_score, r.s.keys);
    }
    free(r.by_score);
    free(r.by_asked);
    free(r.by_sums);
    free(r.by_c);
    free(r.by_state);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Inputs: X W - C KEYS MEMORY LENGTHS QUERY SCORE CELLS DY DCONTEXT ASKED SHARES. */
static const struct op_case cases[] = {
    {.name = "plain",
     .inputs = "f32[5,3,28] f32[7,28] - f32[3,7] - - - - - f32[5,3,7] f32[5,3,7]",
     .outputs = 3},
    {.name = "attention",
     .inputs = "f32[4,2,24] f32[11,24] - f32[2,6] f32[2,7,3] f32[2,7,5] i32[2]=7,4 f32[6,3] f32[3] "
               "f32[4,2,6] f32[4,2,6] f32[4,2,5] f32[4,2,3] f32[4,2,7]{0:1}",
     .outputs = 7},
    {.name = "contexts_alone",
     .inputs = "f32[3,1,16] f32[8,16] - f32[1,4] f32[1,2,4] f32[1,2,4] i32[1]=2 f32[4,4] f32[4] "
               "f32[3,1,4] - f32[3,1,4] f32[3,1,4] f32[3,1,2]{0:1}",
     .outputs = 7},
    {.name = "states_alone",
     .inputs = "f32[3,2,16] f32[8,16] - f32[2,4] f32[2,2,4] f32[2,2,4] i32[2]=2,1 f32[4,4] f32[4] "
               "f32[3,2,4] f32[3,2,4] - f32[3,2,4] f32[3,2,2]{0:1}",
     .outputs = 7},
    {.name = "wide",
     .inputs = "f32[3,9,132] f32[53,132]{-0.3:0.3} - f32[9,33] f32[9,13,37] f32[9,13,20] "
               "i32[9]=13,1,5,7,9,11,13,2,4 f32[33,37]{-0.3:0.3} f32[37] f32[3,9,33] f32[3,9,33] "
               "f32[3,9,20] f32[3,9,37] f32[3,9,13]{0:0.2}",
     .outputs = 7},
};

REGISTER(op, attention_lstm_gradient) = {
    .name = "AttentionLSTMGradient",
    .domain = "ridge",
    .inputs_min = ALSTM_W + 1,
    .inputs_max = ALSTM_GRADIENT_INPUTS,
    .outputs_max = ALSTM_BYS,
    .int_inputs = 1u << ALSTM_LENGTHS,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
