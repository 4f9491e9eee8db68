/* SPDX-License-Identifier: Apache-2.0
 * Ftrl (McMahan et al., 2013), proximal, as TensorFlow's with learning_rate_power -0.5: a' = a +
 * g^2; z' = z + g - (sqrt(a') - sqrt(a)) / rate w; w' = 0 where |z'| <= l1, elsewhere (sign(z') l1
 * - z') / (sqrt(a') / rate + decay): TensorFlow's l2 is half of decay. a starts with `initial`. The
 * rate is above 0. */
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
    slot[0] += gradient * gradient;
    double after = sqrt(slot[0]);
    slot[1] += gradient - (after - before) / s->rate * *weight;
    double z = slot[1];
    *weight =
        fabs(z) > l1 ? (copysign(l1, z) - z) / (after / s->rate + s->parameter[UPDATE_DECAY]) : 0;
}

static const struct update_law law = {.each = each};

static const struct op_case cases[] = {
    {.name = "one",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - "
               "f32[33] f32[33] f32[33]{0.01:1} f32[33]",
     .outputs = 3},
    {.name = "two",
     .inputs = "f32[]{0.01:0.1} i64[]=3 - "
               "f32[7,5] f32[7,5] f32[7,5]{0.01:1} f32[7,5] "
               "f32[1031] f32[1031] f32[1031]{0.01:1} f32[1031]",
     .attrs = "decay=0.1 l1=0.3",
     .outputs = 6},
    {.name = "scaled",
     .inputs = "f32[]{0.01:0.1} i64[]=1000 f32[]{0.1:0.9} "
               "f32[3,3,3,2] f32[3,3,3,2] f32[3,3,3,2]{0.01:1} f32[3,3,3,2]",
     .attrs = "decay=0.1 l1=0.3",
     .outputs = 3},
    {.name = "plain",
     .inputs = "f32[]{0.01:0.1} i64[]=2 - "
               "f32[40,9] f32[40,9] f32[40,9]{0.01:1} f32[40,9]",
     .attrs = "l1=0.0",
     .outputs = 3},
    {.name = "large",
     .inputs = "f32[]{0.01:0.1} i64[]=7 - "
               "f32[70000] f32[70000] f32[70000]{0.01:1} f32[70000] "
               "f32[3] f32[3] f32[3]{0.01:1} f32[3] "
               "f32[20000] f32[20000] f32[20000]{0.01:1} f32[20000]",
     .attrs = "decay=0.1 l1=0.3",
     .outputs = 9},
};

UPDATE_OP(ftrl, "Ftrl", attrs, 10, 3, cases);
