/* SPDX-License-Identifier: Apache-2.0
 * Nesterov: v' = momentum v + d with d = g + decay w; w' = w - rate (d + momentum v'), as PyTorch's
 * and TensorFlow's. */
#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", "momentum", NULL};
static const struct update_rule rule = {
    .name = "nesterov",
    .slots = 1,
    .parameters = {{"decay", 0}, {"momentum", 0.9}},
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double momentum = s->parameter[UPDATE_MOMENTUM];
    double d = gradient + s->parameter[UPDATE_DECAY] * *weight;
    slot[0] = momentum * slot[0] + d;
    *weight -= s->rate * (d + momentum * slot[0]);
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SLOT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(2, "decay=0.1"),
    {.name = "heavy", .inputs = STEP("2") EACH("[40,9]"), .attrs = "momentum=0.5", .outputs = 2},
};

UPDATE_OP(nesterov, "Nesterov", attrs, 6, 0, cases);
