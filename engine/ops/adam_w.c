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

static enum status reference(const struct ref_call *call, struct error *err)
{
    return update_reference(call, &law, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    update_cost(c, 12, 2, cost);
}

static const struct op_case cases[] = {
    {.name = "one",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - "
               "f32[33] f32[33] f32[33] f32[33]{0.01:1}",
     .outputs = 3},
    {.name = "two",
     .inputs = "f32[]{0.01:0.1} i64[]=3 - "
               "f32[7,5] f32[7,5] f32[7,5] f32[7,5]{0.01:1} "
               "f32[1031] f32[1031] f32[1031] f32[1031]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 6},
    {.name = "scaled",
     .inputs = "f32[]{0.01:0.1} i64[]=1000 f32[]{0.1:0.9} "
               "f32[3,3,3,2] f32[3,3,3,2] f32[3,3,3,2] f32[3,3,3,2]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 3},
    {.name = "uncorrected",
     .inputs = "f32[]{0.01:0.1} i64[]=2 - "
               "f32[40,9] f32[40,9] f32[40,9] f32[40,9]{0.01:1}",
     .attrs = "corrected=0 beta1=0.8 beta2=0.99 epsilon=0.001",
     .outputs = 3},
    {.name = "large",
     .inputs = "f32[]{0.01:0.1} i64[]=7 - "
               "f32[70000] f32[70000] f32[70000] f32[70000]{0.01:1} "
               "f32[3] f32[3] f32[3] f32[3]{0.01:1} "
               "f32[20000] f32[20000] f32[20000] f32[20000]{0.01:1}",
     .attrs = "decay=0.1",
     .outputs = 9},
};

REGISTER(op, adam_w) = {
    .name = "AdamW",
    .domain = "ridge",
    .inputs_min = UPDATE_SCALE,
    .inputs_max = -1,
    .outputs_min = 1,
    .outputs_max = -1,
    .attrs = adam_attrs,
    .int_inputs = 1u << UPDATE_STEP,
    .update = &rule,
    .in_place = ~0u,
    .infer = update_infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through an update",
    OP_CASES(cases),
};
