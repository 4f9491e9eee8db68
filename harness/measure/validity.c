/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether samples can be trusted. This is judged before anything else is derived from them; what
 * is not valid is stored and shown, but never ranked. The limits are explained in docs/method.md.
 */
#include <math.h>
#include <stdio.h>

#include "base/numbers/stats.h"
#include "harness/measure/sampler.h"
#include "profilers/lib/nvml.h"

enum { DRIFT_SAMPLES = 30, SLOW_LOOKS = 2 };

static const double steal_limit = 0.02;    /* of all CPU time */
static const double interval_limit = 0.05; /* half-width / median, when the cap came first */
static const double drift_limit = 0.05;    /* median of the last third / of the first third */
static const double clock_limit = 0.75;    /* slowest tenth of looks / median: throttled */

static double steal_share(const struct sampler *s)
{
    double seconds = (double)(sampler_now(s) - s->began_ns) * 1e-9 - s->paused_s;
    bool known = s->stolen_ns != RECORD_NONE && seconds > 0;
    return known ? (double)s->stolen_ns * 1e-9 / seconds / fmax(1, s->options->cpus) : NAN;
}

/* The median of a third of the times. */
static double third(const struct sampler *s, int which)
{
    int count = (int)(s->out->timed / 3);
    for (int k = 0; k < count; k++)
        s->scratch[k] = s->times_s[which == 0 ? k : s->out->timed - count + k];
    stats_sort(s->scratch, count);
    return stats_median(s->scratch, count);
}

static double slow_clock(const struct sampler *s)
{
    const struct measurement *m = s->out;
    int count = 0;
    for (int64_t k = 0; k < m->count; k++)
        if (m->samples[k].phase == SAMPLE_TIME && !isnan(m->samples[k].clock_hz))
            s->scratch[count++] = m->samples[k].clock_hz;
    stats_sort(s->scratch, count);
    return stats_quantile(s->scratch, count, 0.1);
}

static bool drifts(const struct sampler *s, double *by)
{
    const struct measurement *m = s->out;
    if (m->timed < DRIFT_SAMPLES || s->options->protocol->scenario == SCENARIO_SERVER)
        return false;
    *by = third(s, 2) / third(s, 0) - 1;
    double noise = (m->ci_high_s - m->ci_low_s) / m->median_s;
    return fabs(*by) > drift_limit && fabs(*by) > 3 * noise;
}

/* What held the clock down although no time was counted for it. A slowdown seen in a single reading
 * may be a change of clocks. */
static bool is_slowed(const struct sampler *s, char *by, size_t size)
{
    unsigned slow = s->slow;
    if (slow == NVML_SLOW_HARDWARE && s->slow_looks < SLOW_LOOKS)
        slow = 0;
    nvml_name_reasons(slow, by, size);
    return slow != 0;
}

/* A sample in ten may be set apart; in the server's scenario the queue grows in a pause. */
static bool has_too_many_pauses(const struct measurement *m, const struct sampler *s)
{
    bool waits = s->options->protocol->scenario == SCENARIO_SERVER;
    return m->set_apart.count > (waits ? 0 : 1 + m->timed / 10);
}

static void judge_pauses(struct measurement *m)
{
    char text[160];
    pauses_text(&m->set_apart, text, sizeof(text));
    snprintf(m->reason, sizeof(m->reason), "%s; %lld others are too few to rely on", text,
             (long long)m->timed);
}

/* CPU time that others took, where it is a reason not to trust the times. */
static bool judge_waiting(struct measurement *m, const struct sampler *s)
{
    const struct disturbance *d = &s->disturbance;
    m->wait_share = disturbance_share(d, s->options->cpus);
    bool disturbed = disturbance_judge(d, s->options->cpus, m->wait_note, sizeof(m->wait_note));
    if (isnan(m->wait_share))
        snprintf(m->wait_note, sizeof(m->wait_note), "%s", d->unknown);
    return disturbed;
}

void measurement_judge_interval(struct measurement *m, double half)
{
    if (m->timed < STOPPING_SAMPLES_FLOOR)
        snprintf(m->reason, sizeof(m->reason), "only %lld samples", (long long)m->timed);
    else if (half > interval_limit)
        snprintf(m->reason, sizeof(m->reason),
                 "unstable: the median is known to +-%.1f %% only after %lld samples", 100 * half,
                 (long long)m->timed);
}

void measurement_judge(struct measurement *m, const struct sampler *s)
{
    double half = (m->ci_high_s - m->ci_low_s) / 2 / m->median_s, drift = 0;
    double slow = slow_clock(s), wall_s = (double)(sampler_now(s) - s->began_ns) * 1e-9;
    size_t size = sizeof(m->reason);
    char by[120];
    m->steal_share = steal_share(s);
    bool disturbed = judge_waiting(m, s); /* by other programs of this machine */
    bool stolen = m->steal_share > steal_limit && (!disturbed || m->steal_share > m->wait_share);
    if (m->reason[0])
        ; /* the scenario has found a reason already */
    else if (m->interrupted)
        snprintf(m->reason, size, "interrupted after %lld samples", (long long)m->timed);
    else if (has_too_many_pauses(m, s))
        judge_pauses(m);
    else if (m->timed < STOPPING_SAMPLES_FLOOR && !s->options->is_visit)
        measurement_judge_interval(m, NAN);
    else if (s->heat_ns > 0) /* the cause of much that is judged below */
        snprintf(m->reason, size, "throttled: heat held the clock down for %.2g s of %.2g s",
                 (double)s->heat_ns * 1e-9, wall_s);
    else if (is_slowed(s, by, sizeof(by)))
        snprintf(m->reason, size, "throttled: the GPU's clock was held down: %s", by);
    else if (stolen)
        snprintf(m->reason, size, "disturbed: %.1f %% of the CPU time was taken by other machines",
                 100 * m->steal_share);
    else if (disturbed)
        snprintf(m->reason, size, "%s", m->wait_note);
    else if (s->options->protocol->scenario != SCENARIO_SERVER && half > interval_limit &&
             !s->options->is_visit)
        measurement_judge_interval(m, half);
    else if (drifts(s, &drift))
        snprintf(m->reason, size, "drifting: the last third took %+.1f %% against the first",
                 100 * drift);
    else if (slow < clock_limit * m->clock_hz)
        snprintf(m->reason, size, "throttled: the clock fell to %.2f GHz from %.2f GHz",
                 slow * 1e-9, m->clock_hz * 1e-9);
    m->valid = !m->reason[0];
}
