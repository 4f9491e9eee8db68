/* SPDX-License-Identifier: Apache-2.0
 *
 * From samples to the numbers that people ask for. The time is that of an execution, latency is
 * what a caller waited: time in the queue, if there is one, and the execution. */
#include <math.h>

#include "base/numbers/stats.h"
#include "harness/measure/sampler.h"

enum { P99_SAMPLES = 100, P999_SAMPLES = 1000 };

static int gather(const struct measurement *m, bool with_queue, double *seconds)
{
    int count = 0;
    for (int64_t k = 0; k < m->count; k++) {
        const struct sample_record *sample = &m->samples[k];
        if (sample->phase != SAMPLE_TIME)
            continue;
        int64_t queue = with_queue && sample->queue_ns != RECORD_NONE ? sample->queue_ns : 0;
        seconds[count++] = (double)(sample->time_ns + queue) * 1e-9;
    }
    stats_sort(seconds, count);
    return count;
}

static double spread(double *sorted, int count, double median)
{
    for (int k = 0; k < count; k++)
        sorted[k] = fabs(sorted[k] - median);
    stats_sort(sorted, count);
    return stats_median(sorted, count);
}

static double median_clock(const struct measurement *m, double *scratch)
{
    int count = 0;
    for (int64_t k = 0; k < m->count; k++)
        if (m->samples[k].phase == SAMPLE_TIME && !isnan(m->samples[k].clock_hz))
            scratch[count++] = m->samples[k].clock_hz;
    stats_sort(scratch, count);
    return stats_median(scratch, count);
}

static void summarise_latencies(struct measurement *m, double *scratch)
{
    int n = gather(m, true, scratch);
    m->p50_s = stats_median(scratch, n);
    m->p90_s = stats_quantile(scratch, n, 0.9);
    m->p99_s = n >= P99_SAMPLES ? stats_quantile(scratch, n, 0.99) : NAN;
    m->p999_s = n >= P999_SAMPLES ? stats_quantile(scratch, n, 0.999) : NAN;
}

void measurement_summarise(struct measurement *m, double *scratch)
{
    summarise_latencies(m, scratch);
    int n = gather(m, false, scratch);
    m->median_s = stats_median(scratch, n);
    m->min_s = stats_quantile(scratch, n, 0);
    m->max_s = stats_quantile(scratch, n, 1);
    m->q1_s = stats_quantile(scratch, n, 0.25);
    m->q3_s = stats_quantile(scratch, n, 0.75);
    if (!stats_median_interval(scratch, n, &m->ci_low_s, &m->ci_high_s))
        m->ci_low_s = m->ci_high_s = NAN;
    m->mad_s = spread(scratch, n, m->median_s);
    m->clock_hz = median_clock(m, scratch);
}
