/* SPDX-License-Identifier: Apache-2.0
 * GRU. Gates in the order z, r, h. linear_before_reset: the reset gate scales h R' + bias (as
 * cuDNN does) rather than h (Cho et al. 2014). */
#include <stdlib.h>

#include "engine/ops/family/recurrence_gradient.h"
#include "engine/ops/lib/rnn.h"

enum { GATES = 3 };

static const char *const attrs[] = {
    "activation_alpha", "activation_beta",     "activations", "clip", "direction",
    "hidden_size",      "linear_before_reset", "layout",      NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    return rnn_infer(c, GATES, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    rnn_cost(c, GATES, 25, 3, cost);
}

/* Turns the sums of z and r, kept in `recurrent`, into the gates; c becomes r * h. */
static void gates(const struct rnn_step *s, int64_t b)
{
    int64_t hidden = s->shape->hidden;
    double *sum = s->recurrent + b * GATES * hidden;
    for (int64_t k = 0; k < 2 * hidden; k++)
        sum[k] = rnn_activate(&s->activations[0], rnn_clip(s, s->x[b][k] + sum[k]));
    for (int64_t k = 0; k < hidden; k++)
        s->c[b * hidden + k] = sum[hidden + k] * s->h[b * hidden + k];
}

static void update(const struct rnn_step *s, int64_t b, bool linear)
{
    int64_t hidden = s->shape->hidden;
    const double *z = s->recurrent + b * GATES * hidden, *x = s->x[b] + 2 * hidden;
    for (int64_t k = 0; k < hidden; k++) {
        double reset = linear ? z[hidden + k] : 1, *h = &s->h[b * hidden + k];
        double sum = x[k] + reset * z[2 * hidden + k];
        double candidate = rnn_activate(&s->activations[1], rnn_clip(s, sum));
        *h = (1 - z[k]) * candidate + z[k] * *h;
    }
}

static void step(const struct rnn_step *s)
{
    bool linear = node_int(s->node, "linear_before_reset", 0) != 0;
    rnn_recur(s, s->h, 0, linear ? GATES : 2);
    for (int64_t b = 0; b < s->shape->batch; b++)
        if (s->x[b])
            gates(s, b);
    if (!linear)
        rnn_recur(s, s->c, 2, 1);
    for (int64_t b = 0; b < s->shape->batch; b++)
        if (s->x[b])
            update(s, b, linear);
}

static const char *const defaults[] = {"Sigmoid", "Tanh", NULL};
static const struct rnn_cell cell = {.gates = GATES, .defaults = defaults, .step = step};

static enum status reference(const struct ref_call *call, struct error *err)
{
    return rnn_reference(call, &cell, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return gradient_of_recurrence(c, CELL_GRU, defaults, err);
}

static const struct op_case cases[] = {
    {.name = "no_bias", .inputs = "f32[5,2,6] f32[1,24,6]! f32[1,24,8]!", .outputs = 2},
    {.name = "bias",
     .inputs = "f32[7,3,10] f32[1,48,10]! f32[1,48,16]! f32[1,96]!",
     .attrs = "hidden_size=16",
     .outputs = 2},
    {.name = "linear_before_reset",
     .inputs = "f32[7,3,10] f32[1,48,10]! f32[1,48,16]! f32[1,96]!",
     .attrs = "linear_before_reset=1",
     .outputs = 2},
    {.name = "reverse",
     .inputs = "f32[4,2,5] f32[1,21,5]! f32[1,21,7]! f32[1,42]!",
     .attrs = "direction=\"reverse\"",
     .outputs = 2},
    {.name = "bidirectional",
     .inputs = "f32[6,2,12] f32[2,48,12]! f32[2,48,16]! f32[2,96]!",
     .attrs = "direction=\"bidirectional\" linear_before_reset=1",
     .outputs = 2},
    {.name = "lengths",
     .inputs = "f32[5,3,4] f32[2,15,4]! f32[2,15,5]! f32[2,30]! i32[3]=5,2,4 f32[2,3,5]",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 2},
    {.name = "clip",
     .inputs = "f32[3,2,4]{-3:3} f32[1,15,4]! f32[1,15,5]! f32[1,30]!",
     .attrs = "clip=0.5",
     .outputs = 2},
    {.name = "activations",
     .inputs = "f32[3,2,4] f32[1,15,4]! f32[1,15,5]! f32[1,30]!",
     .attrs = "activations=[\"HardSigmoid\",\"LeakyRelu\"] activation_alpha=[0.25,0.1] "
              "activation_beta=[0.4]",
     .outputs = 2},
    {.name = "batch_first",
     .inputs = "f32[2,6,9] f32[1,36,9]! f32[1,36,12]! f32[1,72]! - f32[2,1,12]",
     .attrs = "layout=1",
     .outputs = 2},
    {.name = "one_sequence", .inputs = "f32[9,1,32] f32[1,96,32]! f32[1,96,32]! f32[1,192]!"},
    {.name = "24_units_reverse_lengths",
     .inputs = "f32[4,5,3] f32[1,72,3]! f32[1,72,24]! - i32[5]=4,0,1,3,2 f32[1,5,24]",
     .attrs = "direction=\"reverse\" linear_before_reset=1",
     .outputs = 2},
    {.name = "128_units", /* as many as a GPU's block keeps the weights of, in f32 too */
     .inputs = "f32[3,6,8] f32[1,384,8]! f32[1,384,128]! f32[1,768]!",
     .outputs = 2},
    {.name = "132_units",
     .inputs = "f32[2,5,8] f32[1,396,8]! f32[1,396,132]! f32[1,792]! i32[5]=2,1,2,2,1",
     .attrs = "linear_before_reset=1",
     .outputs = 2},
};

REGISTER(op, gru) = {
    .name = "GRU",
    .narrow = NARROW_WORK,
    .narrow_roundings = 4,
    .inputs_min = 3,
    .inputs_max = 6,
    .int_inputs = 1u << 4,
    .outputs_max = 2,
    .attrs = attrs,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
