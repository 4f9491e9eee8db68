/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/measure/stopping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/stats.h"

void stopping_init(struct stopping *stopping, const struct protocol *protocol, double *scratch)
{
    *stopping = (struct stopping){.protocol = protocol, .sorted = scratch, .interval = NAN};
}

static double relative_interval(struct stopping *s, const struct stopping_state *state)
{
    double low, high;
    memcpy(s->sorted, state->times_s, (size_t)state->count * sizeof(*s->sorted));
    stats_sort(s->sorted, (int)state->count);
    if (!stats_median_interval(s->sorted, (int)state->count, &low, &high))
        return NAN;
    return (high - low) / 2 / stats_median(s->sorted, (int)state->count);
}

static int64_t samples_floor(const struct protocol *p)
{
    return p->samples_floor ? p->samples_floor : STOPPING_SAMPLES_FLOOR;
}

static bool at_cap(const struct protocol *p, const struct stopping_state *state, char *why,
                   size_t size)
{
    if (state->count >= p->samples_max)
        snprintf(why, size, "cap of %lld samples", (long long)p->samples_max);
    else if (state->wall_s >= p->seconds_max && state->count >= samples_floor(p))
        snprintf(why, size, "cap of %g s after %lld samples", p->seconds_max,
                 (long long)state->count);
    else
        return false;
    return true;
}

bool stopping_done(struct stopping *s, const struct stopping_state *state, char *why, size_t size)
{
    const struct protocol *p = s->protocol;
    if (at_cap(p, state, why, size)) {
        s->interval = relative_interval(s, state);
        return true;
    }
    if (state->count < p->samples_min || state->sum_s < p->seconds_min)
        return false;
    if (p->interval <= 0) {
        s->interval = relative_interval(s, state);
        snprintf(why, size, "%lld samples and %g s", (long long)state->count, p->seconds_min);
        return true;
    }
    if (state->count < s->next_check)
        return false;
    /* Sorting costs n log n: with a check only after 10 % more samples its share of the time stays
     * constant. */
    s->next_check = state->count + state->count / 10 + 1;
    s->interval = relative_interval(s, state);
    if (!(s->interval <= p->interval))
        return false;
    snprintf(why, size, "interval %.2g %% of the median after %lld samples", 100 * s->interval,
             (long long)state->count);
    return true;
}

double stopping_share(const struct stopping *s, const struct stopping_state *state)
{
    const struct protocol *p = s->protocol;
    double floors = fmin((double)state->count / (double)p->samples_min,
                         p->seconds_min > 0 ? state->sum_s / p->seconds_min : 1);
    double caps =
        fmax((double)state->count / (double)p->samples_max, state->wall_s / p->seconds_max);
    /* The width of an interval falls with the square root of n. */
    if (!isnan(s->interval) && s->interval > 0 && p->interval > 0)
        floors = fmin(floors, pow(p->interval / s->interval, 2));
    return fmin(1, fmax(floors, caps));
}
