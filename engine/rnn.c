/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/ref_gemm.h"

enum { IN_X, IN_W, IN_R, IN_BIAS, IN_LENGTHS, IN_H, IN_C, IN_PEEPHOLE };

/* ---- shapes ---- */

enum status rnn_shape_from(const struct node *node, int gates, const struct shape *x,
                           const struct shape *r, struct rnn_shape *shape, struct error *err)
{
    const char *direction = node_string(node, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    bool backward = strcmp(direction, "reverse") == 0;
    if (!both && !backward && strcmp(direction, "forward") != 0)
        return FAIL(err, STATUS_FAILED, "%s: direction \"%s\"", node->op->name, direction);
    if (x->rank != 3 || r->rank != 3)
        return FAIL(err, STATUS_FAILED, "%s: input of rank %d, recurrent weights of rank %d, not 3",
                    node->op->name, x->rank, r->rank);
    *shape = (struct rnn_shape){.gates = gates, .directions = both ? 2 : 1, .backward = backward};
    shape->batch_first = node_int(node, "layout", 0) != 0;
    shape->steps = x->dim[shape->batch_first];
    shape->batch = x->dim[!shape->batch_first];
    shape->input = x->dim[2];
    shape->hidden = r->dim[2];
    int64_t named = node_int(node, "hidden_size", shape->hidden);
    if (named != shape->hidden)
        return FAIL(err, STATUS_FAILED, "%s: hidden_size is %lld, the weights say %lld",
                    node->op->name, (long long)named, (long long)shape->hidden);
    return STATUS_OK;
}

static enum status expect(const struct infer *c, int input, const struct shape *want,
                          struct error *err)
{
    char text[96], text_want[96];
    if (!infer_has(c, input) || shape_equal(&c->in[input]->shape, want))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: input %d has shape %s, not %s", c->node->op->name, input,
                shape_text(&c->in[input]->shape, text), shape_text(want, text_want));
}

enum status rnn_infer(const struct infer *c, int gates, struct error *err)
{
    struct rnn_shape s;
    TRY(rnn_shape_from(c->node, gates, &c->in[IN_X]->shape, &c->in[IN_R]->shape, &s, err));
    int64_t rows = gates * s.hidden, directions = s.directions;
    struct shape w = shape_of(directions, rows, s.input), r = shape_of(directions, rows, s.hidden);
    struct shape bias = shape_of(directions, 2 * rows), lengths = shape_of(s.batch);
    struct shape state = shape_of(directions, s.batch, s.hidden);
    struct shape y = shape_of(s.steps, directions, s.batch, s.hidden);
    struct shape peephole = shape_of(directions, 3 * s.hidden);
    if (s.batch_first) {
        state = shape_of(s.batch, directions, s.hidden);
        y = shape_of(s.batch, s.steps, directions, s.hidden);
    }
    const struct shape *want[] = {NULL, &w, &r, &bias, &lengths, &state, &state, &peephole};
    for (int k = 1; k < ARRAY_COUNT(want); k++)
        TRY(expect(c, k, want[k], err));
    infer_set(c, 0, c->in[0]->dtype, &y);
    infer_set(c, 1, c->in[0]->dtype, &state);
    infer_set(c, 2, c->in[0]->dtype, &state);
    return STATUS_OK;
}

void rnn_cost(const struct infer *c, int gates, double per_unit, double calls_per_unit,
              struct cost *cost)
{
    struct rnn_shape s;
    if (rnn_shape_from(c->node, gates, &c->in[IN_X]->shape, &c->in[IN_R]->shape, &s, NULL))
        return;
    double units = (double)(s.steps * s.batch) * (double)(s.hidden * s.directions);
    cost->macs = units * (double)gates * (double)(s.input + s.hidden);
    cost->elementwise = per_unit * units;
    cost->transcendentals = calls_per_unit * units;
}

/* ---- activations ---- */

static double affine(double x, double a, double b)
{
    return a * x + b;
}

static double relu(double x, double a, double b)
{
    (void)a;
    (void)b;
    return x < 0 ? 0 : x;
}

static double leaky_relu(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * x : x;
}

static double thresholded_relu(double x, double a, double b)
{
    (void)b;
    return x > a ? x : 0;
}

static double hyperbolic(double x, double a, double b)
{
    (void)a;
    (void)b;
    return tanh(x);
}

static double scaled_tanh(double x, double a, double b)
{
    return a * tanh(b * x);
}

static double sigmoid(double x, double a, double b)
{
    (void)a;
    (void)b;
    return 1 / (1 + exp(-x));
}

static double hard_sigmoid(double x, double a, double b)
{
    return fmin(fmax(a * x + b, 0), 1);
}

static double elu(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * expm1(x) : x;
}

static double softsign(double x, double a, double b)
{
    (void)a;
    (void)b;
    return x / (1 + fabs(x));
}

static double softplus(double x, double a, double b)
{
    (void)a;
    (void)b;
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

struct activation_kind {
    const char *name;
    double (*value)(double x, double alpha, double beta);
    int parameters; /* how many of alpha, beta it takes from the node's lists */
    double alpha, beta;
};

static const struct activation_kind kinds[] = {
    {"Affine", affine, 2, 1, 0},
    {"Relu", relu, 0, 0, 0},
    {"LeakyRelu", leaky_relu, 1, 0.01, 0},
    {"ThresholdedRelu", thresholded_relu, 1, 1, 0},
    {"Tanh", hyperbolic, 0, 0, 0},
    {"ScaledTanh", scaled_tanh, 2, 1, 1},
    {"Sigmoid", sigmoid, 0, 0, 0},
    {"HardSigmoid", hard_sigmoid, 2, 0.2, 0.5},
    {"Elu", elu, 1, 1, 0},
    {"Softsign", softsign, 0, 0, 0},
    {"Softplus", softplus, 0, 0, 0},
};

static const struct activation_kind *find_kind(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(kinds); k++)
        if (strcasecmp(kinds[k].name, name) == 0)
            return &kinds[k];
    return NULL;
}

/* Takes the next number of a list that the activations share in their order. */
static double take(const struct attr *list, int *next, double fallback)
{
    if (!list || list->kind != ATTR_FLOATS || *next >= list->count)
        return fallback;
    return list->floats[(*next)++];
}

enum status rnn_activations(const struct node *node, int direction, const char *const *defaults,
                            struct rnn_activation *activations, struct error *err)
{
    int count = 0, next_alpha = 0, next_beta = 0;
    while (defaults[count])
        count++;
    const struct attr *names = node_attr(node, "activations");
    const struct attr *alpha = node_attr(node, "activation_alpha");
    const struct attr *beta = node_attr(node, "activation_beta");
    for (int k = 0; k < (direction + 1) * count; k++) {
        bool named = names && names->kind == ATTR_STRINGS && k < names->count;
        const char *name = named ? names->strings[k] : defaults[k % count];
        const struct activation_kind *kind = find_kind(name);
        if (!kind)
            return UNSUPPORTED(err, "%s: activation \"%s\"", node->op->name, name);
        double a = kind->parameters > 0 ? take(alpha, &next_alpha, kind->alpha) : 0;
        double b = kind->parameters > 1 ? take(beta, &next_beta, kind->beta) : 0;
        if (k >= direction * count)
            activations[k % count] = (struct rnn_activation){kind->value, a, b};
    }
    return STATUS_OK;
}

double rnn_activate(const struct rnn_activation *activation, double x)
{
    return activation->value(x, activation->alpha, activation->beta);
}

double rnn_clip(const struct rnn_step *step, double x)
{
    return x > step->clip ? step->clip : x < -step->clip ? -step->clip : x;
}

/* ---- the walk ---- */

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
    double *recurrent, *h, *c;
    const double **rows; /* [B] */
};

static const struct ref_tensor *input(const struct ref_call *call, int index)
{
    return index < call->in_count ? call->in[index] : NULL;
}

static void project(const struct walk *w)
{
    const struct rnn_shape *s = &w->shape;
    const struct ref_tensor *bias = input(w->call, IN_BIAS);
    int64_t width = s->gates * s->hidden, rows = s->steps * s->batch;
    for (int64_t i = 0; i < rows * width; i++)
        w->projected[i] = bias ? bias->f[w->direction * 2 * width + i % width] : 0;
    struct ref_gemm product = {.m = rows,
                               .n = width,
                               .k = s->input,
                               .a = w->call->in[IN_X]->f,
                               .a_row = s->input,
                               .a_col = 1,
                               .b = w->call->in[IN_W]->f + w->direction * width * s->input,
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
    const struct ref_tensor *lengths = input(w->call, IN_LENGTHS);
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
    const struct ref_tensor *bias = input(w->call, IN_BIAS);
    const struct ref_tensor *peephole = input(w->call, IN_PEEPHOLE);
    int64_t width = s->gates * s->hidden;
    struct rnn_activation activations[RNN_ACTIVATIONS_MAX];
    TRY(rnn_activations(w->call->node, w->direction, w->cell->defaults, activations, err));
    struct rnn_step step = {.shape = s,
                            .x = w->rows,
                            .recurrent = w->recurrent,
                            .h = w->h,
                            .c = w->c,
                            .activations = activations,
                            .node = w->call->node,
                            .pool = w->call->pool};
    step.weights = w->call->in[IN_R]->f + w->direction * width * s->hidden;
    step.bias = bias ? bias->f + (w->direction * 2 + 1) * width : NULL;
    step.peephole = peephole ? peephole->f + w->direction * 3 * s->hidden : NULL;
    step.clip = node_float(w->call->node, "clip", (double)INFINITY);
    project(w);
    load_state(w, IN_H, w->h);
    if (w->cell->memory)
        load_state(w, IN_C, w->c);
    for (int64_t t = 0; t < s->steps; t++) {
        for (int64_t b = 0; b < s->batch; b++) {
            int64_t time = time_of(w, b, t),
                    row = s->batch_first ? b * s->steps + time : time * s->batch + b;
            w->rows[b] = time < 0 ? NULL : w->projected + row * width;
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
    TRY(rnn_shape_from(call->node, cell->gates, &call->in[IN_X]->shape, &call->in[IN_R]->shape,
                       &w.shape, err));
    const struct rnn_shape *s = &w.shape;
    size_t width = (size_t)(s->gates * s->hidden), batch = (size_t)s->batch;
    size_t state = batch * (size_t)s->hidden;
    w.projected = calloc((size_t)s->steps * batch * width + 1, sizeof(double));
    w.recurrent = calloc(batch * width + 1, sizeof(double));
    w.h = calloc(state + 1, sizeof(double));
    w.c = calloc(state + 1, sizeof(double));
    w.rows = calloc(batch + 1, sizeof(*w.rows));
    bool memory = w.projected && w.recurrent && w.h && w.c && w.rows;
    enum status status = memory ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int d = 0; d < s->directions && status == STATUS_OK; d++) {
        w.direction = d;
        w.backward = s->backward || d == 1;
        status = walk_direction(&w, err);
    }
    free(w.rows);
    free(w.c);
    free(w.h);
    free(w.recurrent);
    free(w.projected);
    return status;
}
