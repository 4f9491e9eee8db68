/* SPDX-License-Identifier: Apache-2.0
 * LARS (You et al., 2017): v' = momentum v + rate t (g + decay w); w' = w - v', with a trust of the
 * weight t = coefficient |w| / (|g| + decay |w| + epsilon), norms over all of its elements. t is 1
 * where either norm is 0 and for weights without decay: biases and scales of normalisations, which
 * MLPerf's reference leaves out as well. */
#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay", "momentum", "coefficient", "epsilon", NULL};
static const struct update_rule rule = {
    .name = "lars",
    .slots = 1,
    .takes_norms = true,
    .parameters = {{"decay", 0}, {"momentum", 0.9}, {"coefficient", 0.001}, {"epsilon", 0}},
};

static double direction(const struct update_step *s, double gradient, double weight,
                        const double *slot)
{
    (void)s;
    (void)weight;
    (void)slot;
    return gradient;
}

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    slot[0] = s->parameter[LARS_MOMENTUM] * slot[0] +
              s->rate * s->trust * (gradient + s->parameter[UPDATE_DECAY] * *weight);
    *weight -= slot[0];
}

static const struct update_law law = {.each = each, .direction = direction, .trust = lars_trust};

#define EACH(shape) WEIGHT(shape) SLOT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(2, "decay=0.1 coefficient=0.02"),
    {.name = "epsilon",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "decay=0.01 coefficient=1.0 epsilon=0.5",
     .outputs = 2},
};

UPDATE_OP(lars, "Lars", attrs, 8, 0, cases);
