/* SPDX-License-Identifier: Apache-2.0
 * RecurrentGradient (ridge): back through time in one direction of LSTM, GRU, AUGRU or RNN. Inputs
 * and outputs: engine/ops/lib/recurrence.h. Of a gate's sum s and its value v = f(s), f being
 * sigmoid or tanh, the slope is v (1 - v) or 1 - v^2. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/recurrence.h"

static const char *const attrs[] = {"cell", "reverse", "linear_before_reset", "relu", NULL};

static enum status check(const struct infer *c, int input, bool must, const struct shape *want,
                         struct error *err)
{
    char text[96], text_want[96];
    if (!infer_has(c, input) && !must)
        return STATUS_OK;
    if (!infer_has(c, input) || !shape_equal(&c->in[input]->shape, want))
        return FAIL(err, STATUS_FAILED, "RecurrentGradient: input %d is %s, not %s", input,
                    infer_has(c, input) ? shape_text(&c->in[input]->shape, text) : "absent",
                    shape_text(want, text_want));
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct recurrence r;
    const struct shape *a = &c->in[RECURRENCE_A]->shape;
    TRY(recurrence_from(c->node, a, &r, err));
    bool resets = cell_resets(r.cell), attends = r.cell == CELL_AUGRU;
    struct shape each = shape_of(r.steps, r.batch, r.hidden), state = shape_of(r.batch, r.hidden);
    struct shape weights = shape_of(r.width, r.hidden), lengths = shape_of(r.batch);
    struct shape attention = shape_of(r.steps, r.batch);
    TRY(check(c, RECURRENCE_U, resets, a, err));
    TRY(check(c, RECURRENCE_R, true, &weights, err));
    TRY(check(c, RECURRENCE_DY, false, &each, err));
    TRY(check(c, RECURRENCE_DH, false, &state, err));
    TRY(check(c, RECURRENCE_DC, false, &state, err));
    TRY(check(c, RECURRENCE_H, resets, &each, err));
    TRY(check(c, RECURRENCE_C, false, &state, err));
    TRY(check(c, RECURRENCE_LENGTHS, false, &lengths, err));
    TRY(check(c, RECURRENCE_ATTENTION, attends, &attention, err));
    enum dtype dtype = c->in[RECURRENCE_A]->dtype;
    infer_set(c, RECURRENCE_OF_A, dtype, a);
    infer_set(c, RECURRENCE_OF_U, dtype, a);
    infer_set(c, RECURRENCE_OF_FIRST, dtype, &state);
    infer_set(c, RECURRENCE_OF_MEMORY, dtype, &state);
    infer_set(c, RECURRENCE_OF_ATTENTION, dtype, &attention);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct recurrence r;
    if (recurrence_from(c->node, &c->in[RECURRENCE_A]->shape, &r, NULL) != STATUS_OK)
        return;
    double units = (double)(r.steps * r.batch * r.hidden);
    cost->macs = units * (double)r.width;
    cost->elementwise = (r.cell == CELL_RNN ? 8 : r.cell == CELL_LSTM ? 44 : 34) * units;
    cost->transcendentals = (cell_gates(r.cell) + (r.cell == CELL_LSTM)) * units;
}

/* One sequence at one moment. Sums and their gradients are of `width` elements, others of H. */
struct moment {
    const double *a, *u, *h, *before; /* before: LSTM's memory before the step; NULL: zero */
    const double *now;                /* LSTM's memory after it */
    double *da, *du, *dh, *dc;        /* dh, dc: on entry after the step, then before it */
    double *reset;                    /* gradient by reset h */
    double attention, dattention;
};

struct walk {
    const struct ref_call *call;
    struct recurrence r;
    double *memory;          /* LSTM: [T, B, H] after each step */
    double *dh, *dc, *spare; /* [B, H], [B, H], [G H + H] */
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static const double *input(const struct walk *w, int index)
{
    return index < w->call->in_count && w->call->in[index] ? w->call->in[index]->f : NULL;
}

static double *output(const struct walk *w, int index)
{
    return index < w->call->out_count && w->call->out[index] ? w->call->out[index]->f : NULL;
}

static int64_t time_of(const struct walk *w, int64_t b, int64_t step)
{
    const struct ref_tensor *lengths =
        RECURRENCE_LENGTHS < w->call->in_count ? w->call->in[RECURRENCE_LENGTHS] : NULL;
    return recurrence_time(&w->r, lengths ? lengths->i[b] : w->r.steps, step);
}

/* to += x R[first .. first + count), rows of R being H long. */
static void through(const struct walk *w, const double *x, int64_t first, int64_t count, double *to)
{
    const double *r = input(w, RECURRENCE_R) + first * w->r.hidden;
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < w->r.hidden; j++)
            to[j] += x[k] * r[k * w->r.hidden + j];
}

static void back_rnn(const struct walk *w, struct moment *m)
{
    for (int64_t k = 0; k < w->r.hidden; k++) {
        double h = w->r.relu ? m->a[k] : tanh(m->a[k]);
        m->da[k] = m->dh[k] * (w->r.relu ? h > 0 : 1 - h * h);
        m->dh[k] = 0;
    }
    through(w, m->da, 0, w->r.width, m->dh);
}

static void back_lstm(const struct walk *w, struct moment *m)
{
    int64_t n = w->r.hidden;
    for (int64_t k = 0; k < n; k++) {
        double i = sigmoid(m->a[k]), o = sigmoid(m->a[n + k]), f = sigmoid(m->a[2 * n + k]);
        double g = tanh(m->a[3 * n + k]), before = m->before ? m->before[k] : 0;
        double seen = tanh(m->now[k]), dc = m->dc[k] + m->dh[k] * o * (1 - seen * seen);
        m->da[k] = dc * g * i * (1 - i);
        m->da[n + k] = m->dh[k] * seen * o * (1 - o);
        m->da[2 * n + k] = dc * before * f * (1 - f);
        m->da[3 * n + k] = dc * i * (1 - g * g);
        m->dc[k] = dc * f;
        m->dh[k] = 0;
    }
    through(w, m->da, 0, w->r.width, m->dh);
}

/* h' = (1 - z) n + z h */
static void back_gru(const struct walk *w, struct moment *m)
{
    int64_t n = w->r.hidden;
    bool linear = w->r.linear;
    for (int64_t k = 0; k < n; k++) {
        double gate = sigmoid(m->a[k] + m->u[k]), r = sigmoid(m->a[n + k] + m->u[n + k]);
        double z = gate * (1 - m->attention), u = m->u[2 * n + k];
        double v = tanh(m->a[2 * n + k] + (linear ? r * u : u));
        double dz = m->dh[k] * (m->h[k] - v), dv = m->dh[k] * (1 - z) * (1 - v * v);
        m->da[2 * n + k] = dv;
        m->du[2 * n + k] = linear ? dv * r : dv;
        m->da[n + k] = dv * u * r * (1 - r); /* linear; else it waits for what comes below */
        m->du[k] = m->da[k] = dz * (1 - m->attention) * gate * (1 - gate);
        m->dattention -= dz * gate;
        m->dh[k] *= z;
        m->reset[k] = 0;
    }
    if (!linear)
        through(w, m->du + 2 * n, 2 * n, n, m->reset);
    for (int64_t k = 0; k < n; k++) {
        double r = sigmoid(m->a[n + k] + m->u[n + k]);
        if (!linear)
            m->da[n + k] = m->reset[k] * m->h[k] * r * (1 - r);
        m->du[n + k] = m->da[n + k];
        m->dh[k] += linear ? 0 : m->reset[k] * r;
    }
    through(w, m->du, 0, linear ? w->r.width : 2 * n, m->dh);
}

/* LSTM's memory after every step. */
static void remember(const struct walk *w)
{
    const struct recurrence *r = &w->r;
    const double *first = input(w, RECURRENCE_C);
    int64_t n = r->hidden;
    for (int64_t s = 0; s < r->steps; s++)
        for (int64_t b = 0; b < r->batch; b++) {
            int64_t time = time_of(w, b, s);
            if (time < 0)
                continue;
            const double *a = input(w, RECURRENCE_A) + (time * r->batch + b) * r->width;
            double *now = w->memory + (s * r->batch + b) * n;
            for (int64_t k = 0; k < n; k++) {
                double before = s ? now[k - r->batch * n] : first ? first[b * n + k] : 0;
                now[k] = sigmoid(a[2 * n + k]) * before + sigmoid(a[k]) * tanh(a[3 * n + k]);
            }
        }
}

static void back_moment(const struct walk *w, int64_t b, int64_t step, int64_t time)
{
    const struct recurrence *r = &w->r;
    int64_t at = time * r->batch + b, n = r->hidden;
    const double *dy = input(w, RECURRENCE_DY), *u = input(w, RECURRENCE_U);
    const double *h = input(w, RECURRENCE_H), *attention = input(w, RECURRENCE_ATTENTION);
    const double *first = input(w, RECURRENCE_C), *a = input(w, RECURRENCE_A);
    double *da = output(w, RECURRENCE_OF_A);
    double *du = output(w, RECURRENCE_OF_U), *dattention = output(w, RECURRENCE_OF_ATTENTION);
    const double *now = w->memory + (step * r->batch + b) * n;
    bool resets = cell_resets(r->cell);
    if (!a || !da || (resets && (!u || !h)))
        return; /* infer refuses a node without them */
    struct moment m = {.a = a + at * r->width,
                       .u = u ? u + at * r->width : NULL,
                       .h = h ? h + at * n : NULL,
                       .before = step    ? now - r->batch * n
                                 : first ? first + b * n
                                         : NULL,
                       .now = now,
                       .da = da + at * r->width,
                       .du = du ? du + at * r->width : w->spare,
                       .dh = w->dh + b * n,
                       .dc = w->dc + b * n,
                       .reset = w->spare + r->width,
                       .attention = r->cell == CELL_AUGRU ? attention[at] : 0};
    for (int64_t k = 0; dy && k < n; k++)
        m.dh[k] += dy[at * n + k];
    if (r->cell == CELL_RNN)
        back_rnn(w, &m);
    else if (r->cell == CELL_LSTM)
        back_lstm(w, &m);
    else if (resets)
        back_gru(w, &m);
    if (dattention)
        dattention[at] = m.dattention;
}

static void walk_back(const struct walk *w)
{
    const struct recurrence *r = &w->r;
    size_t bytes = (size_t)(r->batch * r->hidden) * sizeof(double);
    const double *dh = input(w, RECURRENCE_DH), *dc = input(w, RECURRENCE_DC);
    double *first = output(w, RECURRENCE_OF_FIRST), *memory = output(w, RECURRENCE_OF_MEMORY);
    if (dh)
        memcpy(w->dh, dh, bytes);
    if (dc)
        memcpy(w->dc, dc, bytes);
    if (r->cell == CELL_LSTM)
        remember(w);
    for (int64_t s = r->steps - 1; s >= 0; s--)
        for (int64_t b = 0; b < r->batch; b++)
            if (time_of(w, b, s) >= 0)
                back_moment(w, b, s, time_of(w, b, s));
    if (first)
        memcpy(first, w->dh, bytes);
    if (memory)
        memcpy(memory, w->dc, bytes);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct walk w = {.call = call};
    TRY(recurrence_from(call->node, &call->in[RECURRENCE_A]->shape, &w.r, err));
    size_t state = (size_t)(w.r.batch * w.r.hidden);
    w.memory = calloc((size_t)w.r.steps * state + 1, sizeof(double));
    w.dh = calloc(state + 1, sizeof(double));
    w.dc = calloc(state + 1, sizeof(double));
    w.spare = calloc((size_t)(w.r.width + w.r.hidden) + 1, sizeof(double));
    bool fine = w.memory && w.dh && w.dc && w.spare;
    if (fine)
        walk_back(&w);
    free(w.spare);
    free(w.dc);
    free(w.dh);
    free(w.memory);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Inputs: A R U DY DH DC H C LENGTHS ATTENTION. */
static const struct op_case cases[] = {
    {.name = "rnn",
     .inputs = "f32[5,3,7] f32[7,7] - f32[5,3,7] f32[3,7]",
     .attrs = "cell=\"rnn\"",
     .outputs = 5},
    {.name = "rnn_relu",
     .inputs = "f32[5,3,20] f32[20,20] - f32[5,3,20] - - - - i32[3]=5,0,2",
     .attrs = "cell=\"rnn\" relu=1 reverse=1",
     .outputs = 2},
    {.name = "lstm",
     .inputs = "f32[6,2,64] f32[64,16] - f32[6,2,16]",
     .attrs = "cell=\"lstm\"",
     .outputs = 3},
    {.name = "lstm_lengths",
     .inputs = "f32[5,3,20] f32[20,5] - f32[5,3,5] f32[3,5] f32[3,5] - f32[3,5] i32[3]=5,2,4",
     .attrs = "cell=\"lstm\" reverse=1",
     .outputs = 3},
    {.name = "lstm_last_alone",
     .inputs = "f32[4,1,36] f32[36,9] - - f32[1,9]",
     .attrs = "cell=\"lstm\"",
     .outputs = 1},
    {.name = "lstm_many",
     .inputs = "f32[4,9,176] f32[176,44] - f32[4,9,44] f32[9,44] f32[9,44] - f32[9,44] "
               "i32[9]=4,1,3,2,4,4,0,2,1",
     .attrs = "cell=\"lstm\"",
     .outputs = 3},
    {.name = "lstm_128",
     .inputs = "f32[3,17,512] f32[512,128]{-0.2:0.2} - f32[3,17,128]",
     .attrs = "cell=\"lstm\"",
     .outputs = 1},
    {.name = "gru",
     .inputs = "f32[5,2,24] f32[24,8] f32[5,2,24] f32[5,2,8] f32[2,8] - f32[5,2,8]",
     .attrs = "cell=\"gru\"",
     .outputs = 4},
    {.name = "gru_linear",
     .inputs = "f32[5,3,60] f32[60,20] f32[5,3,60] f32[5,3,20] - - f32[5,3,20] - i32[3]=1,5,3",
     .attrs = "cell=\"gru\" linear_before_reset=1 reverse=1",
     .outputs = 4},
    {.name = "gru_many",
     .inputs = "f32[4,11,132] f32[132,44] f32[4,11,132] f32[4,11,44] - - f32[4,11,44]",
     .attrs = "cell=\"gru\"",
     .outputs = 4},
    {.name = "augru",
     .inputs = "f32[5,3,24] f32[24,8] f32[5,3,24] f32[5,3,8] f32[3,8] - f32[5,3,8] - "
               "i32[3]=5,2,4 f32[5,3]{0:1}",
     .attrs = "cell=\"augru\"",
     .outputs = 5},
};

REGISTER(op, recurrent_gradient) = {
    .name = "RecurrentGradient",
    .domain = "ridge",
    .inputs_min = 2,
    .inputs_max = RECURRENCE_INPUTS,
    .int_inputs = 1u << RECURRENCE_LENGTHS,
    .outputs_max = RECURRENCE_OUTPUTS,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
