/* SPDX-License-Identifier: Apache-2.0
 * AdamW (Loshchilov and Hutter, 2019): Adam, whose decay does not pass through the moments:
 * w' = w - rate (M / (sqrt(V) + epsilon) + decay w). BERT's is that of corrected=0. */
#include "engine/ops/family/update.h"

static const struct update_rule rule = {
    .name = "adamw",
    .slots = 2,
    .parameters = ADAM_PARAMETERS(1e-8),
    .begin = adam_begin,
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    *weight -= s->rate * (adam_direction(s, gradient, slot) + s->parameter[UPDATE_DECAY] * *weight);
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SLOT(shape) SQUARES(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(3, "decay=0.1"),
    {.name = "uncorrected",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "corrected=0 beta1=0.8 beta2=0.99 epsilon=0.001",
     .outputs = 3},
};

UPDATE_OP(adam_w, "AdamW", adam_attrs, 12, 2, cases);
