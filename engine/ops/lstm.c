/* SPDX-License-Identifier: Apache-2.0
 * LSTM. Gates in the order i, o, f, c; peepholes i, o, f. Hochreiter and Schmidhuber 1997, with
 * the coupled gates and peepholes of Greff et al. 2017. */
#include "engine/ops/family/recurrence_gradient.h"
#include "engine/ops/lib/rnn.h"

enum { GATES = 4, GATE_I = 0, GATE_O, GATE_F, GATE_C };

static const char *const attrs[] = {
    "activation_alpha", "activation_beta", "activations", "clip", "direction",
    "hidden_size",      "input_forget",    "layout",      NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    return rnn_infer(c, GATES, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    rnn_cost(c, GATES, 30, 5, cost);
}

/* One unit of one sequence; x and r point at its pre-activation of gate i. */
static void unit(const struct rnn_step *s, const double *x, const double *r, int64_t at, int64_t k)
{
    int64_t hidden = s->shape->hidden;
    const double *p = s->peephole;
    const struct rnn_activation *f = &s->activations[0], *g = &s->activations[1];
    const struct rnn_activation *h = &s->activations[2];
    double before = s->c[at], sum[GATES];
    for (int gate = 0; gate < GATES; gate++)
        sum[gate] = x[gate * hidden] + r[gate * hidden];
    double i = rnn_activate(f, rnn_clip(s, sum[GATE_I] + (p ? p[k] * before : 0)));
    double forget =
        rnn_activate(f, rnn_clip(s, sum[GATE_F] + (p ? p[2 * hidden + k] * before : 0)));
    if (node_int(s->node, "input_forget", 0))
        forget = 1 - i;
    double now = forget * before + i * rnn_activate(g, rnn_clip(s, sum[GATE_C]));
    double o = rnn_activate(f, rnn_clip(s, sum[GATE_O] + (p ? p[hidden + k] * now : 0)));
    s->c[at] = now;
    s->h[at] = o * rnn_activate(h, now);
}

static void step(const struct rnn_step *s)
{
    int64_t hidden = s->shape->hidden;
    rnn_recur(s, s->h, 0, GATES);
    for (int64_t b = 0; b < s->shape->batch; b++)
        for (int64_t k = 0; s->x[b] && k < hidden; k++)
            unit(s, s->x[b] + k, s->recurrent + b * GATES * hidden + k, b * hidden + k, k);
}

static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh", NULL};
static const struct rnn_cell cell = {
    .gates = GATES, .memory = true, .defaults = defaults, .step = step};

static enum status reference(const struct ref_call *call, struct error *err)
{
    return rnn_reference(call, &cell, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return gradient_of_recurrence(c, CELL_LSTM, defaults, err);
}

static const struct op_case cases[] = {
    {.name = "no_bias", .inputs = "f32[5,2,6] f32[1,32,6]! f32[1,32,8]!", .outputs = 3},
    {.name = "bias",
     .inputs = "f32[7,3,10] f32[1,64,10]! f32[1,64,16]! f32[1,128]!",
     .attrs = "hidden_size=16",
     .outputs = 3},
    {.name = "reverse",
     .inputs = "f32[4,2,5] f32[1,28,5]! f32[1,28,7]! f32[1,56]!",
     .attrs = "direction=\"reverse\"",
     .outputs = 3},
    {.name = "bidirectional",
     .inputs = "f32[6,2,12] f32[2,64,12]! f32[2,64,16]! f32[2,128]!",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 3},
    {.name = "states",
     .inputs = "f32[3,2,4] f32[1,20,4]! f32[1,20,5]! f32[1,40]! - f32[1,2,5] f32[1,2,5]",
     .outputs = 3},
    {.name = "lengths",
     .inputs = "f32[5,3,4] f32[2,20,4]! f32[2,20,5]! f32[2,40]! i32[3]=5,2,4 f32[2,3,5] f32[2,3,5]",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 3},
    {.name = "peepholes",
     .inputs = "f32[3,2,4] f32[1,20,4]! f32[1,20,5]! f32[1,40]! - - - f32[1,15]!",
     .outputs = 3},
    {.name = "coupled",
     .inputs = "f32[3,2,4] f32[1,20,4]! f32[1,20,5]! f32[1,40]!",
     .attrs = "input_forget=1",
     .outputs = 3},
    {.name = "clip",
     .inputs = "f32[3,2,4]{-3:3} f32[1,20,4]! f32[1,20,5]! f32[1,40]!",
     .attrs = "clip=0.5",
     .outputs = 3},
    {.name = "activations",
     .inputs = "f32[3,2,4] f32[1,20,4]! f32[1,20,5]! f32[1,40]!",
     .attrs = "activations=[\"HardSigmoid\",\"Softsign\",\"ScaledTanh\"] "
              "activation_alpha=[0.25,1.5] activation_beta=[0.4,0.75]",
     .outputs = 3},
    {.name = "batch_first",
     .inputs = "f32[2,6,9] f32[1,48,9]! f32[1,48,12]! f32[1,96]!",
     .attrs = "layout=1",
     .outputs = 3},
    {.name = "one_sequence", .inputs = "f32[9,1,32] f32[1,128,32]! f32[1,128,32]! f32[1,256]!"},
    {.name = "44_units_many_sequences",
     .inputs = "f32[4,9,6] f32[2,176,6]! f32[2,176,44]! f32[2,352]! i32[9]=4,1,3,2,4,4,0,2,1 "
               "f32[2,9,44] f32[2,9,44]",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 3},
    {.name = "128_units", /* a GPU's block keeps the weights in 16 bits, not in f32 */
     .inputs = "f32[2,3,8] f32[1,512,8]! f32[1,512,128]! f32[1,1024]!",
     .outputs = 3},
    {.name = "64_units", /* a GPU's cluster of blocks has 16 sequences */
     .inputs = "f32[3,17,32] f32[2,256,32]! f32[2,256,64]! f32[2,512]! "
               "i32[17]=3,1,2,3,0,3,3,3,2,1,3,3,3,1,3,3,2 f32[2,17,64] f32[2,17,64]",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 3},
    {.name = "64_units_many_sequences", /* or 32 */
     .inputs = "f32[2,139,32] f32[2,256,32]! f32[2,256,64]! f32[2,512]!",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 3},
    {.name = "128_units_batch_first", /* of which each warp has another part */
     .inputs = "f32[5,3,64] f32[1,512,64]! f32[1,512,128]!",
     .attrs = "layout=1 direction=\"reverse\"",
     .outputs = 3},
};

REGISTER(op, lstm) = {
    .name = "LSTM",
    .narrow = NARROW_WORK,
    .narrow_roundings = 4,
    .inputs_min = 3,
    .inputs_max = 8,
    .int_inputs = 1u << 4,
    .outputs_max = 3,
    .attrs = attrs,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
