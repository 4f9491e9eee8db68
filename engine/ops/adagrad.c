/* SPDX-License-Identifier: Apache-2.0
 * Adagrad (Duchi et al., 2011): a' = a + d^2 with d = g + decay w; w' = w - R d / (sqrt(a') +
 * epsilon), R = rate / (1 + (step - 1) rate_decay), as PyTorch's; TensorFlow's has epsilon=0. a
 * starts with `initial`. */
#include <math.h>

#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", "epsilon", "rate_decay", "initial", NULL};

/* What is left of the rate. */
static void begin(struct update_step *s)
{
    s->first = 1 / (1 + (double)(s->number - 1) * s->parameter[ADAGRAD_RATE_DECAY]);
}

static const struct update_rule rule = {
    .name = "adagrad",
    .slots = 1,
    .initial = "initial",
    .parameters = {{"decay", 0}, {"epsilon", 1e-10}, {"rate_decay", 0}},
    .begin = begin,
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double d = gradient + s->parameter[UPDATE_DECAY] * *weight;
    slot[0] += d * d;
    *weight -= s->first * s->rate * d / (sqrt(slot[0]) + s->parameter[ADAGRAD_EPSILON]);
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SQUARES(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(2, "decay=0.1"),
    {.name = "slowing",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "rate_decay=0.5 epsilon=0.01",
     .outputs = 2},
};

UPDATE_OP(adagrad, "Adagrad", attrs, 5, 2, cases);
