/* SPDX-License-Identifier: Apache-2.0
 * AUGRU (ridge): a GRU whose update gate is scaled by 1 - a, where a is the attention that the step
 * has for its sequence (Zhou et al., "Deep Interest Evolution Network for Click-Through Rate
 * Prediction", AAAI 2019, in the form of its code).
 *
 * Inputs as GRU's, then attention, shaped like the first two dimensions of x. One direction, reset
 * before the product. Beyond the length of a sequence its state stays. */

#include "engine/ops/family/recurrence_gradient.h"
#include "engine/ops/lib/rnn.h"

enum { GATES = 3 };

static const char *const attrs[] = {"hidden_size", "layout", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct infer gru = *c;
    char text[96];
    const struct shape *x = &c->in[RNN_X]->shape;
    gru.in_count = RNN_ATTENTION;
    TRY(rnn_infer(&gru, GATES, err));
    if (!infer_has(c, RNN_ATTENTION))
        return FAIL(err, STATUS_FAILED, "AUGRU: the attention is absent");
    const struct shape *a = &c->in[RNN_ATTENTION]->shape;
    if (a->rank != 2 || a->dim[0] != x->dim[0] || a->dim[1] != x->dim[1])
        return FAIL(err, STATUS_FAILED, "AUGRU: attention of shape %s, not [%lld,%lld]",
                    shape_text(a, text), (long long)x->dim[0], (long long)x->dim[1]);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    rnn_cost(c, GATES, 26, 3, cost);
}

/* z and r from the sums in `recurrent`; c becomes r h. */
static void gates(const struct rnn_step *s, int64_t b)
{
    int64_t hidden = s->shape->hidden;
    double *sum = s->recurrent + b * GATES * hidden;
    for (int64_t k = 0; k < 2 * hidden; k++)
        sum[k] = rnn_activate(&s->activations[0], s->x[b][k] + sum[k]);
    for (int64_t k = 0; k < hidden; k++) {
        sum[k] *= 1 - s->attention[b];
        s->c[b * hidden + k] = sum[hidden + k] * s->h[b * hidden + k];
    }
}

static void update(const struct rnn_step *s, int64_t b)
{
    int64_t hidden = s->shape->hidden;
    const double *z = s->recurrent + b * GATES * hidden, *x = s->x[b] + 2 * hidden;
    for (int64_t k = 0; k < hidden; k++) {
        double *h = &s->h[b * hidden + k];
        double candidate = rnn_activate(&s->activations[1], x[k] + z[2 * hidden + k]);
        *h = (1 - z[k]) * candidate + z[k] * *h;
    }
}

static void step(const struct rnn_step *s)
{
    rnn_recur(s, s->h, 0, 2);
    for (int64_t b = 0; b < s->shape->batch; b++)
        if (s->x[b])
            gates(s, b);
    rnn_recur(s, s->c, 2, 1);
    for (int64_t b = 0; b < s->shape->batch; b++)
        if (s->x[b])
            update(s, b);
}

static const char *const defaults[] = {"Sigmoid", "Tanh", NULL};
static const struct rnn_cell cell = {
    .gates = GATES, .attention = true, .defaults = defaults, .step = step};

static enum status reference(const struct ref_call *call, struct error *err)
{
    return rnn_reference(call, &cell, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return gradient_of_recurrence(c, CELL_AUGRU, defaults, err);
}

static const struct op_case cases[] = {
    {.name = "plain",
     .inputs = "f32[5,2,6] f32[1,24,6]! f32[1,24,8]! f32[1,48]! - - f32[5,2]{0:1}",
     .outputs = 2},
    {.name = "lengths",
     .inputs = "f32[9,3,36] f32[1,108,36]! f32[1,108,36]! f32[1,216]! i32[3]=9,2,5 f32[1,3,36] "
               "f32[9,3]{0:1}",
     .outputs = 2},
    {.name = "batch_first",
     .inputs = "f32[2,6,9] f32[1,36,9]! f32[1,36,12]! f32[1,72]! - f32[2,1,12] f32[2,6]{0:1}",
     .attrs = "layout=1",
     .outputs = 2},
    {.name = "full_attention_takes_the_candidate",
     .inputs = "f32[4,2,5] f32[1,21,5]! f32[1,21,7]! - - - f32[4,2]=1",
     .outputs = 2},
    {.name = "many_sequences",
     .inputs = "f32[3,70,4] f32[1,48,4]! f32[1,48,16]! f32[1,96]! - - f32[3,70]{0:1}",
     .outputs = 2},
};

REGISTER(op, augru) = {
    .name = "AUGRU",
    .narrow = NARROW_WORK,
    .narrow_roundings = 4,
    .domain = "ridge",
    .inputs_min = 3,
    .inputs_max = 7,
    .int_inputs = 1u << RNN_LENGTHS,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
