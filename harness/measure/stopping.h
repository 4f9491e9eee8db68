/* SPDX-License-Identifier: Apache-2.0
 *
 * When to stop sampling. The rule: not before samples_min samples and seconds_min of accumulated
 * sample time; then as soon as the half-width of the median's 95 % interval is at most `interval`
 * of the median; never beyond samples_max samples or seconds_max of wall time (but six samples are
 * taken at least, the fewest with an interval, or samples_floor where that is given).
 */
#ifndef HARNESS_MEASURE_STOPPING_H
#define HARNESS_MEASURE_STOPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/suite/plan.h"

enum { STOPPING_SAMPLES_FLOOR = 6 };

struct stopping {
    const struct protocol *protocol;
    double *sorted;     /* scratch for samples_max numbers, borrowed */
    int64_t next_check; /* the interval is computed again at so many samples */
    double interval;    /* half-width / median at the last look; NAN before */
};

struct stopping_state {
    const double *times_s;
    int64_t count;
    double sum_s, wall_s;
};

void stopping_init(struct stopping *stopping, const struct protocol *protocol, double *scratch);
/* True when sampling ends; why then has the reason. */
bool stopping_done(struct stopping *stopping, const struct stopping_state *state, char *why,
                   size_t why_size);
/* Rough share of the work that is done, in [0, 1], for the progress bar. */
double stopping_share(const struct stopping *stopping, const struct stopping_state *state);

#endif
