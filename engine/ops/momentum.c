/* SPDX-License-Identifier: Apache-2.0
 * Momentum: v' = momentum v + g + decay w; w' = w - rate v', as PyTorch's SGD and Caffe at a
 * constant rate. */
#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", "momentum", NULL};
static const struct update_rule rule = {
    .name = "momentum",
    .slots = 1,
    .parameters = {{"decay", 0}, {"momentum", 0.9}},
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    slot[0] =
        s->parameter[UPDATE_MOMENTUM] * slot[0] + gradient + s->parameter[UPDATE_DECAY] * *weight;
    *weight -= s->rate * slot[0];
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SLOT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(2, "decay=0.1"),
    {.name = "heavy", .inputs = STEP("2") EACH("[40,9]"), .attrs = "momentum=0.5", .outputs = 2},
};

UPDATE_OP(momentum, "Momentum", attrs, 4, 0, cases);
