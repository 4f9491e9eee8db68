/* SPDX-License-Identifier: Apache-2.0
 * RMSProp (Hinton, 2012), v' = rho v + (1 - rho) d^2 with d = g + decay w. As PyTorch's:
 * b' = momentum b + d / (sqrt(v') + epsilon), w' = w - rate b'. tensorflow=1: b' = momentum b +
 * rate d / sqrt(v' + epsilon), w' = w - b'. v starts with `initial`: PyTorch's is 0,
 * TensorFlow's 1. */
#include <math.h>

#include "engine/ops/family/update.h"

static const char *const attrs[] = {"decay",      "momentum", "rho", "epsilon",
                                    "tensorflow", "initial",  NULL};
static const struct update_rule rule = {
    .name = "rmsprop",
    .slots = 2,
    .initial = "initial",
    .parameters =
        {{"decay", 0}, {"momentum", 0}, {"rho", 0.99}, {"epsilon", 1e-8}, {"tensorflow", 0}},
};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    double rho = s->parameter[RMS_RHO], epsilon = s->parameter[RMS_EPSILON];
    double d = gradient + s->parameter[UPDATE_DECAY] * *weight;
    slot[0] = rho * slot[0] + (1 - rho) * d * d;
    bool tensorflow = s->parameter[RMS_TENSORFLOW] != 0;
    double step =
        tensorflow ? s->rate * d / sqrt(slot[0] + epsilon) : d / (sqrt(slot[0]) + epsilon);
    slot[1] = s->parameter[RMS_MOMENTUM] * slot[1] + step;
    *weight -= tensorflow ? slot[1] : s->rate * slot[1];
}

static const struct update_law law = {.each = each};

#define EACH(shape) WEIGHT(shape) SQUARES(shape) SLOT(shape)
static const struct op_case cases[] = {
    UPDATE_CASES(3, "decay=0.1"),
    {.name = "tensorflow",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "tensorflow=1 momentum=0.9 rho=0.9 epsilon=0.1",
     .outputs = 3},
    {.name = "momentum",
     .inputs = STEP("2") EACH("[40,9]"),
     .attrs = "momentum=0.9 rho=0.9 epsilon=0.1",
     .outputs = 3},
};

UPDATE_OP(rms_prop, "RMSProp", attrs, 9, 2, cases);
