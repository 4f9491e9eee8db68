/* SPDX-License-Identifier: Apache-2.0
 * Adam (Kingma and Ba, 2015): m' = beta1 m + (1 - beta1) d, v' = beta2 v + (1 - beta2) d^2 with
 * d = g + decay w; w' = w - rate M / (sqrt(V) + epsilon), where M and V are m' and v' divided by
 * 1 - beta^step, or, corrected=0, as they are. */
#include "engine/ops/family/update.h"

static const struct update_rule rule = {
    .name = "adam",
    .slots = 2,
    .parameters = ADAM_PARAMETERS(1e-8),
    .begin = adam_begin,
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double d = gradient + s->parameter[UPDATE_DECAY] * *weight;
    *weight -= s->rate * adam_direction(s, d, slot);
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SLOT(shape) SQUARES(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(3, "decay=0.1"),
    {.name = "no_step",
     .inputs = STEP("0") WEIGHT("[33]") SQUARES("[33]") SQUARES("[33]"),
     .outputs = 3},
    {.name = "uncorrected",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "corrected=0 beta1=0.8 beta2=0.99 epsilon=0.001",
     .outputs = 3},
};

UPDATE_OP(adam, "Adam", adam_attrs, 12, 2, cases);
