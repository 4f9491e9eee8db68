/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/measure/sampler.h"
#include "profilers/lib/nvml.h"

enum { WARMUP_MAX = 1000, PROGRESS_PERIOD_NS = 100000000 };

static const double offline_block_s = 0.1;

uint64_t sampler_now(const struct sampler *s)
{
    const struct time_source *time = s->options->time;
    return time->now_ns(time->context);
}

/* Growth of a counter since it was last known. */
static int64_t growth(int64_t *last, int64_t now)
{
    if (now == RECORD_NONE)
        return RECORD_NONE;
    int64_t by = *last == RECORD_NONE ? RECORD_NONE : now - *last;
    *last = now;
    return by;
}

static int64_t known(int64_t by)
{
    return by == RECORD_NONE ? 0 : by;
}

static void see_pauses(struct sampler *s, const struct surroundings *now)
{
    s->seen = (struct pause_facts){.cpu_s = NAN};
    if (now->cpu_ns == RECORD_NONE && now->stops == RECORD_NONE)
        return;
    int64_t cpu = growth(&s->last.cpu_ns, now->cpu_ns);
    s->seen.cpu_s = cpu == RECORD_NONE ? NAN : (double)cpu * 1e-9;
    s->seen.asleep_s = (double)known(growth(&s->last.asleep_ns, now->asleep_ns)) * 1e-9;
    s->seen.stops = known(growth(&s->last.stops, now->stops));
    s->seen.reads = known(growth(&s->last.disk_reads, now->disk_reads));
}

/* Notes what happened around the latest sample. */
static void sampler_look(struct sampler *s, struct sample_record *sample)
{
    const struct time_source *time = s->options->time;
    struct surroundings now = surroundings_unknown();
    if (time->look)
        time->look(time->context, s->end_ns, &now);
    sample->context_switches = growth(&s->last.context_switches, now.context_switches);
    sample->migrations = growth(&s->last.migrations, now.migrations);
    sample->page_faults = growth(&s->last.page_faults, now.page_faults);
    sample->steal_ns = growth(&s->last.steal_ns, now.steal_ns);
    sample->clock_hz = now.clock_hz;
    see_pauses(s, &now);
    int64_t heat = growth(&s->last.heat_ns, now.heat_ns);
    if (sample->phase != SAMPLE_TIME)
        return;
    if (sample->steal_ns != RECORD_NONE)
        s->stolen_ns = known(s->stolen_ns) + sample->steal_ns;
    s->heat_ns += heat != RECORD_NONE ? heat : 0;
    s->slow |= now.slow;
    s->slow_looks += now.slow == NVML_SLOW_HARDWARE;
}

static void flush(struct sampler *s)
{
    uint64_t start = sampler_now(s);
    s->subject->flush(s->subject->context);
    s->flush_ns += sampler_now(s) - start;
}

uint64_t sampler_take(struct sampler *s, enum sample_phase phase, int64_t block)
{
    const struct subject *subject = s->subject;
    if (s->options->protocol->cold)
        flush(s);
    uint64_t start = sampler_now(s);
    if (block > 1 && subject->run_many)
        subject->run_many(subject->context, block);
    else
        for (int64_t k = 0; k < block; k++)
            subject->run(subject->context);
    if (subject->finish)
        subject->finish(subject->context);
    s->end_ns = sampler_now(s);
    uint64_t ns = (s->end_ns - start) / (uint64_t)block;
    struct sample_record *sample = &s->out->samples[s->out->count++];
    *sample =
        (struct sample_record){.phase = phase, .time_ns = (int64_t)ns, .queue_ns = RECORD_NONE};
    sampler_look(s, sample);
    s->cpu_s[s->out->count - 1] = s->seen.cpu_s / (double)block;
    return ns;
}

static bool progress_is_due(const struct sampler *s)
{
    return s->options->progress && s->end_ns - s->progress_ns >= PROGRESS_PERIOD_NS;
}

bool sampler_go_on(struct sampler *s, double share)
{
    const struct measure_options *o = s->options;
    if (!progress_is_due(s))
        return true;
    s->progress_ns = s->end_ns;
    double spent = (double)(s->end_ns - s->began_ns) * 1e-9;
    double left = share > 0 ? fmin(spent * (1 - share) / share, o->protocol->seconds_max) : NAN;
    if (o->progress(o->progress_context, share, left))
        return true;
    s->out->interrupted = true;
    return false;
}

static void warm_up(struct sampler *s)
{
    const struct protocol *p = s->options->protocol;
    uint64_t end = sampler_now(s) + (uint64_t)(p->warmup_s * 1e9);
    for (int64_t k = 0; k < WARMUP_MAX && (k < p->warmup_runs || sampler_now(s) < end); k++) {
        sampler_take(s, SAMPLE_WARMUP, 1);
        if (!sampler_go_on(s, 0))
            return;
    }
    /* Nobody asked for a warm-up, but blocks and rates are multiples of an execution's time. */
    if (s->out->count == 0 && p->scenario != SCENARIO_SINGLE_STREAM)
        sampler_take(s, SAMPLE_WARMUP, 1);
}

/* Executions per sample: as many as make a block so long that the overhead does not matter. */
static int64_t block_size(const struct sampler *s)
{
    const struct measurement *m = s->out;
    if (s->options->protocol->scenario != SCENARIO_OFFLINE)
        return 1;
    /* The fastest of the last warm-ups: one that something held up would make blocks too short. */
    double run_s = (double)m->samples[m->count - 1].time_ns * 1e-9;
    for (int64_t k = m->count - 2; k >= 0 && k >= m->count - 3; k--)
        run_s = fmin(run_s, (double)m->samples[k].time_ns * 1e-9);
    if (s->subject->join)
        s->subject->join(s->subject->context, run_s);
    return run_s > 0 ? (int64_t)ceil(fmin(offline_block_s / run_s, 1e6)) : 1;
}

static void stream(struct sampler *s)
{
    struct measurement *m = s->out;
    int64_t block = block_size(s);
    for (bool done = false; !done && !m->interrupted;) {
        s->times_s[m->timed] = (double)sampler_take(s, SAMPLE_TIME, block) * 1e-9;
        if (sampler_set_apart(s, block)) {
            sampler_go_on(s, 0);
            continue;
        }
        s->sum_s += s->times_s[m->timed++] * (double)block;
        double wall_s = (double)(s->end_ns - s->began_ns) * 1e-9 - s->paused_s;
        struct stopping_state state = {s->times_s, m->timed, s->sum_s, wall_s};
        done = stopping_done(&s->stopping, &state, m->stop_reason, sizeof(m->stop_reason));
        if (!done && progress_is_due(s))
            sampler_go_on(s, stopping_share(&s->stopping, &state));
    }
    double wall_s = (double)(sampler_now(s) - s->began_ns - s->flush_ns) * 1e-9 - s->paused_s;
    m->overhead_s = fmax(0, wall_s - s->sum_s) / fmax(1, (double)m->timed);
}

static enum status prepare(struct sampler *s, struct error *err)
{
    const struct protocol *p = s->options->protocol;
    struct measurement *m = s->out;
    int64_t samples = p->samples_max > p->server_queries ? p->samples_max : p->server_queries;
    m->capacity = samples + WARMUP_MAX + SET_APART_MAX;
    m->samples = calloc((size_t)m->capacity, sizeof(*m->samples));
    s->cpu_s = calloc((size_t)m->capacity, sizeof(*s->cpu_s));
    s->times_s = calloc((size_t)samples, sizeof(*s->times_s));
    s->scratch = calloc((size_t)m->capacity, sizeof(*s->scratch));
    return m->samples && s->times_s && s->scratch && s->cpu_s ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void watch(struct sampler *s)
{
    const struct time_source *time = s->options->time;
    if (time->watch)
        time->watch(time->context);
    s->began_ns = sampler_now(s);
}

static void watched(struct sampler *s)
{
    const struct time_source *time = s->options->time;
    s->disturbance = disturbance_unknown("nothing here watches it");
    if (time->watched)
        time->watched(time->context, &s->disturbance);
    s->disturbance.wall_s -= s->paused_s;
}

static enum status take(struct sampler *s, struct error *err)
{
    struct sample_record before = {.phase = SAMPLE_WARMUP};
    TRY(prepare(s, err));
    stopping_init(&s->stopping, s->options->protocol, s->scratch);
    s->began_ns = s->end_ns = sampler_now(s);
    sampler_look(s, &before);
    warm_up(s);
    s->flush_ns = 0;
    if (s->out->interrupted)
        return STATUS_OK;
    watch(s);
    enum status status = STATUS_OK;
    if (s->options->protocol->scenario == SCENARIO_SERVER)
        status = server_run(s, err);
    else
        stream(s);
    watched(s);
    return status;
}

enum status measure_run(const struct subject *subject, const struct measure_options *options,
                        struct measurement *out, struct error *err)
{
    *out = (struct measurement){.overhead_s = NAN, .rate_hz = NAN};
    if (options->protocol->cold && !subject->flush)
        return UNSUPPORTED(err, "this device cannot flush its caches");
    struct sampler s = {
        .subject = subject,
        .options = options,
        .out = out,
        .last = surroundings_unknown(),
        .stolen_ns = RECORD_NONE,
        .disturbance = disturbance_unknown("nothing was timed"),
    };
    enum status status = take(&s, err);
    if (status == STATUS_OK) {
        measurement_summarise(out, s.scratch);
        if (options->protocol->scenario != SCENARIO_SERVER && out->median_s > 0)
            out->rate_hz = 1 / out->median_s;
        measurement_judge(out, &s);
    } else {
        measurement_release(out);
    }
    free(s.cpu_s);
    free(s.times_s);
    free(s.scratch);
    return status;
}

void measurement_release(struct measurement *measurement)
{
    free(measurement->samples);
    measurement->samples = NULL;
}
