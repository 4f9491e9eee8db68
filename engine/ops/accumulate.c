/* SPDX-License-Identifier: Apache-2.0
 * Accumulate: s' = keep s + g for any number of sums s and gradients g. It is no optimiser, but
 * goes through weights as one does (struct update_rule): keep stands where those have the rate, and
 * is 0 in the first of the executions whose gradients are summed. */
#include "engine/ops/family/update.h"

static const struct update_rule rule = {.slots = 0};

static void each(const struct update_step *s, double gradient, double *weight, double *slot)
{
    (void)slot;
    *weight = s->rate * *weight + gradient;
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
    {.name = "two",
     .inputs = "f32[]{0.5:1} i64[]=3 - "
               "f32[7,5] f32[7,5] "
               "f32[1031] f32[1031]",
     .outputs = 2},
    {.name = "first", .inputs = "f32[]=0 i64[]=1 - f32[33] f32[33]"},
    {.name = "large",
     .inputs = "f32[]=1 i64[]=2 - "
               "f32[70000] f32[70000] "
               "f32[3] f32[3]",
     .outputs = 2},
};

REGISTER(op, accumulate) = {
    .name = "Accumulate",
    .domain = "ridge",
    .inputs_min = UPDATE_SCALE,
    .inputs_max = -1,
    .outputs_max = -1,
    .int_inputs = 1u << UPDATE_STEP,
    .update = &rule,
    .in_place = ~0u,
    .infer = update_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through an update",
    OP_CASES(cases),
};
