/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples in which the process was paused: recognised by what other samples of the same
 * measurement took (harness/measure/pause.h). */
#include <math.h>

#include "base/numbers/stats.h"
#include "harness/measure/sampler.h"

enum { OTHERS_MIN = 3 };

static const double least_s = 0.01;     /* a shorter sample, or sleep, is no pause worth a word */
static const double least_idle_s = 0.1; /* the same without a sign of a stop */

/* Times (or CPU times) of one execution in the samples of a phase but the latest, after those that
 * are in scratch already. */
static int gather(const struct sampler *s, enum sample_phase phase, bool cpu, int count)
{
    const struct measurement *m = s->out;
    for (int64_t k = 0; k + 1 < m->count; k++) {
        double value = cpu ? s->cpu_s[k] : (double)m->samples[k].time_ns * 1e-9;
        if (m->samples[k].phase == phase && !isnan(value))
            s->scratch[count++] = value;
    }
    return count;
}

/* Warm-up stands in while there are few. */
static double median_of(const struct sampler *s, bool cpu)
{
    int count = gather(s, SAMPLE_TIME, cpu, 0);
    if (count < OTHERS_MIN)
        count = gather(s, SAMPLE_WARMUP, cpu, count);
    stats_sort(s->scratch, count);
    return count < OTHERS_MIN ? NAN : stats_median(s->scratch, count);
}

static bool is_worth_a_look(const struct pause_facts *f)
{
    return f->asleep_s > least_s || f->wall_s > least_idle_s ||
           (f->stops > 0 && f->wall_s > least_s);
}

bool sampler_set_apart(struct sampler *s, int64_t block)
{
    struct measurement *m = s->out;
    struct pause_facts facts = s->seen;
    facts.wall_s = (double)m->samples[m->count - 1].time_ns * 1e-9 * (double)block;
    if (!is_worth_a_look(&facts) || m->set_apart.count >= SET_APART_MAX)
        return false;
    struct pause_usual usual = {median_of(s, false) * (double)block,
                                median_of(s, true) * (double)block};
    struct pauses found = {1, facts.wall_s, pause_judge(&facts, &usual)};
    if (found.kind == PAUSE_NONE)
        return false;
    pauses_add(&m->set_apart, &found);
    s->paused_s += facts.wall_s;
    struct sample_record *sample = &m->samples[m->count - 1];
    if (sample->steal_ns != RECORD_NONE)
        s->stolen_ns -= sample->steal_ns;
    sample->phase = SAMPLE_DISCARDED;
    return true;
}
