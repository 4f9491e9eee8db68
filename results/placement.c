/* SPDX-License-Identifier: Apache-2.0 */
#include "results/placement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "results/level.h"

enum { READINGS_MIN = 6 };
/* What the best quarter of the readings shows, the machine can reach. */
static const double good_part = 0.25;
/* One core for two threads halves the rate; clocks move by less than this. */
static const double crowded = 0.8;
/* Distant chips take three times as long as neighbouring ones; a reading scatters by a tenth. */
static const double distant = 1.6;

struct placement placement_of(const struct visit_record *visit)
{
    struct placement p = {NAN, NAN};
    for (int k = 0; k < visit->level_count; k++) {
        const struct level_record *level = &visit->levels[k];
        if (strcmp(level->name, level_kinds[LEVEL_HAND_OVER].name) == 0)
            p.hand_over_s = level->value;
        else if (strcmp(level->name, level_kinds[LEVEL_ARITHMETIC].name) == 0)
            p.multiply_add = level->value;
    }
    return p;
}

static bool is_crowded(const struct placement *reading, const struct placement *usual)
{
    return reading->multiply_add < crowded * usual->multiply_add;
}

enum status placement_usual(const struct placement *readings, int count, struct placement *out,
                            struct error *err)
{
    *out = (struct placement){NAN, NAN};
    if (count < READINGS_MIN)
        return STATUS_OK;
    double *values = calloc((size_t)count, sizeof(*values));
    if (!values)
        return FAIL_NO_MEMORY(err);
    int used = 0;
    for (int k = 0; k < count; k++)
        if (readings[k].multiply_add > 0)
            values[used++] = readings[k].multiply_add;
    stats_sort(values, used);
    if (used >= READINGS_MIN)
        out->multiply_add = stats_quantile(values, used, 1 - good_part);
    used = 0;
    for (int k = 0; k < count; k++)
        if (readings[k].hand_over_s > 0 && !is_crowded(&readings[k], out))
            values[used++] = readings[k].hand_over_s;
    stats_sort(values, used);
    if (used >= READINGS_MIN)
        out->hand_over_s = stats_quantile(values, used, good_part);
    free(values);
    return STATUS_OK;
}

bool placement_differs(const struct placement *reading, const struct placement *usual, char *text,
                       size_t size)
{
    double slower = reading->hand_over_s / usual->hand_over_s;
    if (is_crowded(reading, usual))
        snprintf(text, size,
                 "the machine's CPUs shared their cores: multiplying and adding ran at %.0f %% of "
                 "this run's usual rate",
                 100 * reading->multiply_add / usual->multiply_add);
    else if (slower > distant)
        snprintf(text, size,
                 "the machine's CPUs lay farther apart: handing work to threads took %.1f times as "
                 "long as usual in this run",
                 slower);
    else
        return false;
    return true;
}
