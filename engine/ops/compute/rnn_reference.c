/* SPDX-License-Identifier: Apache-2.0
 *
 * The references of LSTM, GRU and RNN. x W' of all steps is one product per direction; each step
 * then adds h R'. A sequence that has ended keeps its state, and its outputs stay zero.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/rnn.h"

double rnn_clip(const struct rnn_step *step, double x)
{
    return x > step->clip ? step->clip : x < -step->clip ? -step->clip : x;
}

void rnn_recur(const struct rnn_step *step, const double *h, int first, int count)
{
    const struct rnn_shape *s = step->shape;
    int64_t width = s->gates * s->hidden, start = first * s->hidden, columns = count * s->hidden;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t k = start; k < start + columns; k++)
            step->recurrent[b * width + k] = step->bias ? step->bias[k] : 0;
    struct ref_gemm product = {.m = s->batch,
                               .n = columns,
                               .k = s->hidden,
                               .a = h,
                               .a_row = s->hidden,
                               .a_col = 1,
                               .b = step->weights + start * s->hidden,
                               .b_row = 1,
                               .b_col = s->hidden,
                               .c = step->recurrent + start,
                               .c_row = width};
    ref_gemm_run(step->pool, &product, 1);
}

/* Everything one direction needs; the arrays are shared by the directions. */
struct walk {
    const struct ref_call *call;
    const struct rnn_cell *cell;
    struct rnn_shape shape;
    int direction;
    bool backward;
    double *projected; /* x W' + bias, rows in the order of x */
    double *recurrent, *h, *c, *attention;
    const double **rows; /* [B] */
};

static const struct ref_tensor *input(const struct ref_call *call, int index)
{
    return index < call->in_count ? call->in[index] : NULL;
}

static void project(const struct walk *w)
{
    const struct rnn_shape *s = &w->shape;
    const struct ref_tensor *bias = input(w->call, RNN_BIAS);
    int64_t width = s->gates * s->hidden, rows = s->steps * s->batch;
    for (int64_t i = 0; i < rows * width; i++)
        w->projected[i] = bias ? bias->f[w->direction * 2 * width + i % width] : 0;
    struct ref_gemm product = {.m = rows,
                               .n = width,
                               .k = s->input,
                               .a = w->call->in[RNN_X]->f,
                               .a_row = s->input,
                               .a_col = 1,
                               .b = w->call->in[RNN_W]->f + w->direction * width * s->input,
                               .b_row = 1,
                               .b_col = s->input,
                               .c = w->projected,
                               .c_row = width};
    ref_gemm_run(w->call->pool, &product, 1);
}

/* Where the state of this direction and batch element lies in a tensor of states. */
static int64_t state_at(const struct walk *w, int64_t b)
{
    const struct rnn_shape *s = &w->shape;
    return s->batch_first ? (b * s->directions + w->direction) * s->hidden
                          : (w->direction * s->batch + b) * s->hidden;
}

static void load_state(const struct walk *w, int index, double *state)
{
    const struct ref_tensor *given = input(w->call, index);
    int64_t hidden = w->shape.hidden;
    for (int64_t b = 0; b < w->shape.batch; b++)
        for (int64_t k = 0; k < hidden; k++)
            state[b * hidden + k] = given ? given->f[state_at(w, b) + k] : 0;
}

static void store_state(const struct walk *w, int index, const double *state)
{
    int64_t hidden = w->shape.hidden;
    if (index >= w->call->out_count || !w->call->out[index])
        return;
    for (int64_t b = 0; b < w->shape.batch; b++)
        memcpy(w->call->out[index]->f + state_at(w, b), state + b * hidden,
               (size_t)hidden * sizeof(*state));
}

/* The moment that step number `step` of sequence b stands for; -1: the sequence has ended. */
static int64_t time_of(const struct walk *w, int64_t b, int64_t step)
{
    const struct ref_tensor *lengths = input(w->call, RNN_LENGTHS);
    int64_t length = lengths ? lengths->i[b] : w->shape.steps;
    if (length > w->shape.steps)
        length = w->shape.steps;
    return step >= length ? -1 : w->backward ? length - 1 - step : step;
}

static void store_output(const struct walk *w, int64_t b, int64_t time)
{
    const struct rnn_shape *s = &w->shape;
    int64_t at = s->batch_first ? (b * s->steps + time) * s->directions + w->direction
                                : (time * s->directions + w->direction) * s->batch + b;
    if (w->call->out[0])
        memcpy(w->call->out[0]->f + at * s->hidden, w->h + b * s->hidden,
               (size_t)s->hidden * sizeof(double));
}

static enum status walk_direction(const struct walk *w, struct error *err)
{
    const struct rnn_shape *s = &w->shape;
    const struct ref_tensor *bias = input(w->call, RNN_BIAS);
    const struct ref_tensor *peephole = input(w->call, RNN_PEEPHOLE);
    int64_t width = s->gates * s->hidden;
    struct rnn_activation activations[RNN_ACTIVATIONS_MAX];
    TRY(rnn_activations(w->call->node, w->direction, w->cell->defaults, activations, err));
    struct rnn_step step = {.shape = s,
                            .x = w->rows,
                            .recurrent = w->recurrent,
                            .h = w->h,
                            .c = w->c,
                            .attention = w->attention,
                            .activations = activations,
                            .node = w->call->node,
                            .pool = w->call->pool};
    step.weights = w->call->in[RNN_R]->f + w->direction * width * s->hidden;
    step.bias = bias ? bias->f + (w->direction * 2 + 1) * width : NULL;
    step.peephole = peephole ? peephole->f + w->direction * 3 * s->hidden : NULL;
    step.clip = node_float(w->call->node, "clip", (double)INFINITY);
    project(w);
    load_state(w, RNN_H, w->h);
    if (w->cell->memory)
        load_state(w, RNN_C, w->c);
    for (int64_t t = 0; t < s->steps; t++) {
        for (int64_t b = 0; b < s->batch; b++) {
            int64_t time = time_of(w, b, t),
                    row = s->batch_first ? b * s->steps + time : time * s->batch + b;
            w->rows[b] = time < 0 ? NULL : w->projected + row * width;
            if (w->cell->attention && time >= 0)
                w->attention[b] = w->call->in[RNN_ATTENTION]->f[row];
        }
        w->cell->step(&step);
        for (int64_t b = 0; b < s->batch; b++)
            if (w->rows[b])
                store_output(w, b, time_of(w, b, t));
    }
    store_state(w, 1, w->h);
    if (w->cell->memory)
        store_state(w, 2, w->c);
    return STATUS_OK;
}

enum status rnn_reference(const struct ref_call *call, const struct rnn_cell *cell,
                          struct error *err)
{
    struct walk w = {.call = call, .cell = cell};
    TRY(rnn_shape_from(call->node, cell->gates, &call->in[RNN_X]->shape, &call->in[RNN_R]->shape,
                       &w.shape, err));
    const struct rnn_shape *s = &w.shape;
    size_t width = (size_t)(s->gates * s->hidden), batch = (size_t)s->batch;
    size_t state = batch * (size_t)s->hidden;
    w.projected = calloc((size_t)s->steps * batch * width + 1, sizeof(double));
    w.recurrent = calloc(batch * width + 1, sizeof(double));
    w.h = calloc(state + 1, sizeof(double));
    w.c = calloc(state + 1, sizeof(double));
    w.attention = calloc(batch + 1, sizeof(double));
    w.rows = calloc(batch + 1, sizeof(*w.rows));
    bool memory = w.projected && w.recurrent && w.h && w.c && w.attention && w.rows;
    enum status status = memory ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int d = 0; d < s->directions && status == STATUS_OK; d++) {
        w.direction = d;
        w.backward = s->backward || d == 1;
        status = walk_direction(&w, err);
    }
    free(w.rows);
    free(w.attention);
    free(w.c);
    free(w.h);
    free(w.recurrent);
    free(w.projected);
    return status;
}
