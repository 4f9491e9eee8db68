/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/unit/scripted.h"

#include <math.h>

#include "tests/lib/unit.h"

static uint64_t now_ns(void *context)
{
    return ((struct script *)context)->now;
}

static void sleep_until(void *context, uint64_t ns)
{
    struct script *s = context;
    s->slept += ns - s->now;
    s->now = ns;
}

static void look(void *context, uint64_t now, struct surroundings *out)
{
    struct script *s = context;
    assert_true(now == s->now);
    s->steal_ns += s->steal_per_look_ns;
    s->heat_ns += s->heat_from_run && s->runs >= s->heat_from_run ? 100000 : 0;
    int64_t apart = s->jitters ? s->runs % 2 * 30 : 0;
    *out = (struct surroundings){.context_switches = s->runs,
                                 .migrations = RECORD_NONE,
                                 .page_faults = 7,
                                 .steal_ns = s->steal_ns + (int64_t)(s->steals * (double)s->now),
                                 .cpu_ns = s->busy > 0 ? (int64_t)s->cpu_ns : RECORD_NONE,
                                 .disk_reads = s->reads,
                                 .stops = s->stops,
                                 .asleep_ns = s->asleep_ns + apart,
                                 .clock_hz = s->clock_hz,
                                 .heat_ns = s->heat_ns,
                                 .slow = s->runs >= s->slow_from && s->runs <= s->slow_to ? s->slow
                                                                                          : 0};
}

static void watch(void *context)
{
    struct script *s = context;
    s->watched_from = s->runs;
}

static void watched(void *context, struct disturbance *out)
{
    *out = ((struct script *)context)->disturbance;
}

static void run(void *context)
{
    struct script *s = context;
    double ns = s->ns(s->runs++);
    s->now += (uint64_t)ns;
    s->cpu_ns += 2 * s->busy * ns;
    if (s->sleeps_every && s->runs % s->sleeps_every == 0)
        s->asleep_ns += 1000000000;
    if (!(s->pause_ns > 0) || s->runs != s->pause_run)
        return;
    s->now += (uint64_t)s->pause_ns;
    s->cpu_ns += s->pause_cpu_ns;
    s->stops += s->pause_stops;
    s->reads += s->pause_reads;
    s->asleep_ns += s->pause_asleep_ns;
}

static void join(void *context, double run_s)
{
    struct script *s = context;
    s->joined_s = run_s;
}

static void run_many(void *context, int64_t runs)
{
    struct script *s = context;
    s->many += runs;
    for (int64_t k = 0; k < runs; k++)
        run(s);
}

static void flush(void *context)
{
    struct script *s = context;
    s->flushed++;
    s->now += 5000;
}

static bool progress(void *context, double share, double left)
{
    struct script *s = context;
    assert_true(share >= 0 && share <= 1);
    assert_true(isnan(left) || left >= 0);
    s->progress_calls++;
    return !s->stop_after || s->runs < s->stop_after;
}

double script_constant(int64_t k)
{
    (void)k;
    return 1e6;
}

struct protocol script_protocol(void)
{
    return (struct protocol){.scenario = SCENARIO_SINGLE_STREAM,
                             .warmup_s = 0,
                             .warmup_runs = 3,
                             .samples_min = 15,
                             .samples_max = 20000,
                             .seconds_min = 0,
                             .seconds_max = 15,
                             .interval = 0.01,
                             .latency_quantile = 0.99,
                             .server_queries = 200};
}

static void release_measurement(void *m)
{
    measurement_release(m);
}

struct measurement script_measure(struct script *s, const struct protocol *p)
{
    struct measurement m;
    struct time_source time = {now_ns, sleep_until, look, s, watch, watched};
    struct subject subject = {.run = run,
                              .flush = flush,
                              .context = s,
                              .join = s->joins ? join : NULL,
                              .run_many = s->joins ? run_many : NULL};
    struct measure_options options = {
        .protocol = p, .time = &time, .progress = progress, .progress_context = s, .cpus = 2};
    MUST(measure_run, &subject, &options, &m);
    after_test(release_measurement, &m, sizeof(m));
    return m;
}
