/* SPDX-License-Identifier: Apache-2.0
 * LAMB (You et al., 2020): w' = w - rate t D with D = M / (sqrt(V) + epsilon) + decay w, moments as
 * in Adam, and a trust of the weight t = |w| / |D|, norms over all of its elements. t is 1 where
 * either norm is 0 and for weights without decay: biases and scales of normalisations, which
 * the authors' code leaves out as well. */
#include "engine/ops/family/update.h"

static const struct update_rule rule = {
    .name = "lamb",
    .slots = 2,
    .takes_norms = true,
    .parameters = ADAM_PARAMETERS(1e-6),
    .begin = adam_begin,
};

static double direction(const struct update_step *s, double gradient, double weight,
                        const double *slot)
{
    double moments[] = {slot[0], slot[1]};
    return adam_direction(s, gradient, moments) + s->parameter[UPDATE_DECAY] * weight;
}

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double d = adam_direction(s, gradient, slot) + s->parameter[UPDATE_DECAY] * *weight;
    *weight -= s->rate * s->trust * d;
}

static const struct update_law law = {.each = each, .direction = direction, .trust = lamb_trust};

#define EACH(shape) WEIGHT(shape) SLOT(shape) SQUARES(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(3, "decay=0.1"),
    {.name = "no_step",
     .inputs = STEP("0") WEIGHT("[33]") SQUARES("[33]") SQUARES("[33]"),
     .outputs = 3},
    {.name = "uncorrected",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "corrected=0 decay=0.01 beta1=0.8 beta2=0.99 epsilon=0.001",
     .outputs = 3},
};

UPDATE_OP(lamb, "Lamb", adam_attrs, 16, 2, cases);
