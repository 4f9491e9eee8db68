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

UPDATE_OP(sgd, "Sgd", attrs, 2, 0, cases);
