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

static const struct op_case cases[] = {
    {.name = "one",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - "
               "f32[33] f32[33] f32[33]{0.01:1}",
     .outputs = 2},
    {.name = "two",
     .inputs = "f32[]{0.01:0.1} i64[]=3 - "
               "f32[7,5] f32[7,5] f32[7,5]{0.01:1} "
               "f32[1031] f32[1031] f32[1031]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 4},
    {.name = "scaled",
     .inputs = "f32[]{0.01:0.1} i64[]=1000 f32[]{0.1:0.9} "
               "f32[3,3,3,2] f32[3,3,3,2] f32[3,3,3,2]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 2},
    {.name = "slowing",
     .inputs = "f32[]{0.01:0.1} i64[]=2 - "
               "f32[40,9] f32[40,9] f32[40,9]{0.01:1}",
     .attrs = "rate_decay=0.5 epsilon=0.01",
     .outputs = 2},
    {.name = "large",
     .inputs = "f32[]{0.01:0.1} i64[]=7 - "
               "f32[70000] f32[70000] f32[70000]{0.01:1} "
               "f32[3] f32[3] f32[3]{0.01:1} "
               "f32[20000] f32[20000] f32[20000]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 6},
};

UPDATE_OP(adagrad, "Adagrad", attrs, 5, 2, cases);
