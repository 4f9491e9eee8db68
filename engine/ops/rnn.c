/* SPDX-License-Identifier: Apache-2.0
 * RNN: h = f(x W' + h R' + bias). Elman 1990. */
#include "engine/ops/lib/rnn.h"
#include "engine/ops/family/recurrence_gradient.h"

static const char *const attrs[] = {"activation_alpha", "activation_beta", "activations", "clip",
                                    "direction",        "hidden_size",     "layout",      NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    return rnn_infer(c, 1, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    rnn_cost(c, 1, 8, 1, cost); /* two biases, a sum, tanh 5 */
}

static void step(const struct rnn_step *s)
{
    int64_t hidden = s->shape->hidden;
    rnn_recur(s, s->h, 0, 1);
    for (int64_t b = 0; b < s->shape->batch; b++)
        for (int64_t k = 0; s->x[b] && k < hidden; k++)
            s->h[b * hidden + k] = rnn_activate(
                &s->activations[0], rnn_clip(s, s->x[b][k] + s->recurrent[b * hidden + k]));
}

static const char *const defaults[] = {"Tanh", NULL};
static const struct rnn_cell cell = {.gates = 1, .defaults = defaults, .step = step};

static enum status reference(const struct ref_call *call, struct error *err)
{
    return rnn_reference(call, &cell, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return gradient_of_recurrence(c, CELL_RNN, defaults, err);
}

static const struct op_case cases[] = {
    {.name = "no_bias", .inputs = "f32[5,2,6] f32[1,8,6]! f32[1,8,8]!", .outputs = 2},
    {.name = "bias", .inputs = "f32[7,3,10] f32[1,16,10]! f32[1,16,16]! f32[1,32]!", .outputs = 2},
    {.name = "reverse",
     .inputs = "f32[4,2,5] f32[1,7,5]! f32[1,7,7]! f32[1,14]!",
     .attrs = "direction=\"reverse\"",
     .outputs = 2},
    {.name = "lengths",
     .inputs = "f32[5,3,4] f32[2,5,4]! f32[2,5,5]! f32[2,10]! i32[3]=5,2,4 f32[2,3,5]",
     .attrs = "direction=\"bidirectional\"",
     .outputs = 2},
    {.name = "relu_and_elu",
     .inputs = "f32[5,3,4] f32[2,5,4]! f32[2,5,5]! f32[2,10]!",
     .attrs = "direction=\"bidirectional\" activations=[\"Relu\",\"Elu\"] activation_alpha=[0.5]",
     .outputs = 2},
    {.name = "clip",
     .inputs = "f32[3,2,4]{-3:3} f32[1,5,4]! f32[1,5,5]! f32[1,10]!",
     .attrs = "clip=0.5",
     .outputs = 2},
    {.name = "batch_first",
     .inputs = "f32[2,6,9] f32[1,12,9]! f32[1,12,12]! f32[1,24]! - f32[2,1,12]",
     .attrs = "layout=1",
     .outputs = 2},
    {.name = "40_units_states",
     .inputs = "f32[6,5,4] f32[1,40,4]! f32[1,40,40]! f32[1,80]! - f32[1,5,40]",
     .attrs = "direction=\"reverse\"",
     .outputs = 2},
};

REGISTER(op, rnn) = {
    .name = "RNN",
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
