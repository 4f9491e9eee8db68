/* SPDX-License-Identifier: Apache-2.0
 * Sgd: w' = w - rate (g + decay w). */
#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", NULL};
static const struct update_rule rule = {
    .name = "sgd",
    .slots = 0,
    .parameters = {{"decay", 0}},
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    (void)slot;
    *weight -= s->rate * (gradient + s->parameter[UPDATE_DECAY] * *weight);
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(1, "decay=0.1"),
    {.name = "no_step", .inputs = STEP("0") EACH("[33]"), .outputs = 1},
};

UPDATE_OP(sgd, "Sgd", attrs, 2, 0, cases);
