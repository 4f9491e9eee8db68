/* SPDX-License-Identifier: Apache-2.0
 * Ftrl (McMahan et al., 2013), proximal, as TensorFlow's with learning_rate_power -0.5: a' = a +
 * g^2; z' = z + g - (sqrt(a') - sqrt(a)) / rate w; w' = 0 where |z'| <= l1, elsewhere (sign(z') l1
 * - z') / (sqrt(a') / rate + decay): TensorFlow's l2 is half of decay. a starts with `initial`. At
 * a rate of 0, with which a warm-up begins, all stays as it is. */
#include <math.h>

#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", "l1", "initial", NULL};
static const struct update_rule rule = {
    .name = "ftrl",
    .slots = 2,
    .initial = "initial",
    .parameters = {{"decay", 0}, {"l1", 0}},
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double before = sqrt(slot[0]), l1 = s->parameter[FTRL_L1];
    if (s->rate == 0)
        return;
    slot[0] += gradient * gradient;
    double after = sqrt(slot[0]);
    slot[1] += gradient - (after - before) / s->rate * *weight;
    double z = slot[1];
    *weight =
        fabs(z) > l1 ? (copysign(l1, z) - z) / (after / s->rate + s->parameter[UPDATE_DECAY]) : 0;
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SQUARES(shape) SLOT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(3, "decay=0.1 l1=0.3"),
    {.name = "plain", .inputs = STEP("2") EACH("[40,9]"), .attrs = "l1=0.0", .outputs = 3},
    {.name = "no_rate", .inputs = "f32[]=0 i64[]=1 - " EACH("[40,9]"), .outputs = 3},
};

UPDATE_OP(ftrl, "Ftrl", attrs, 10, 3, cases);
