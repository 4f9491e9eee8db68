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

static enum status reference(const struct ref_call *call, struct error *err)
{
    return update_reference(call, &law, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    update_cost(c, 2, 0, cost);
}

static const struct op_case cases[] = {
    {.name = "no_step",
     .inputs = "f32[]{0.01:0.1} i64[]=0 - "
               "f32[33] f32[33]",
     .outputs = 1},
    {.name = "one",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - "
               "f32[33] f32[33]",
     .outputs = 1},
    {.name = "two",
     .inputs = "f32[]{0.01:0.1} i64[]=3 - "
               "f32[7,5] f32[7,5] "
               "f32[1031] f32[1031]",
     .attrs = "decay=0.1",
     .outputs = 2},
    {.name = "scaled",
     .inputs = "f32[]{0.01:0.1} i64[]=1000 f32[]{0.1:0.9} "
               "f32[3,3,3,2] f32[3,3,3,2]",
     .attrs = "decay=0.1",
     .outputs = 1},
    {.name = "large",
     .inputs = "f32[]{0.01:0.1} i64[]=7 - "
               "f32[70000] f32[70000] "
               "f32[3] f32[3] "
               "f32[20000] f32[20000]",
     .attrs = "decay=0.1",
     .outputs = 3},
};

REGISTER(op, sgd) = {
    .name = "Sgd",
    .domain = "ridge",
    .inputs_min = UPDATE_SCALE,
    .inputs_max = -1,
    .outputs_min = 1,
    .outputs_max = -1,
    .attrs = attrs,
    .int_inputs = 1u << UPDATE_STEP,
    .update = &rule,
    .in_place = ~0u,
    .infer = update_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through an update",
    OP_CASES(cases),
};
