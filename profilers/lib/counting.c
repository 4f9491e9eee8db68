/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "profilers/lib/counting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "profilers/lib/formula.h"

struct pass {
    struct group group;
    struct counters_set *set; /* NULL: nothing of it can be counted */
    char reasons[GROUP_EVENTS_MAX][COUNTERS_REASON];
    double sums[GROUP_EVENTS_MAX], idle_rate[GROUP_EVENTS_MAX];
    uint64_t began_ns;
    double seconds;
    int64_t executions;
};

struct counting {
    const struct counters_backend *backend;
    struct arena arena;
    struct cpu_identity cpu;
    struct pass *passes; /* those with a set first */
    int count, active;
};

/* What a roofline wants to know: named even where no group has it. */
static const struct {
    const char *name, *unit;
} usual[] = {{"flops", "1"},
             {"dram_read_bytes", "B"},
             {"dram_write_bytes", "B"},
             {"instructions", "1"},
             {"cycles", "1"}};

static void wait_for(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static bool has_event(const struct pass *pass)
{
    for (int k = 0; k < pass->group.event_count; k++)
        if (!pass->reasons[k][0])
            return true;
    return false;
}

/* What the counters of the whole machine do while ridge sleeps. */
static void watch_idle(const struct counting *c, struct pass *pass, double seconds)
{
    char reason[COUNTERS_REASON];
    double values[GROUP_EVENTS_MAX];
    if (seconds <= 0 || !c->backend->start(pass->set, reason))
        return;
    uint64_t began = clock_now_ns();
    wait_for(seconds);
    double took = (double)(clock_now_ns() - began) * 1e-9;
    if (c->backend->stop(pass->set, values, reason))
        for (int k = 0; k < pass->group.event_count; k++)
            pass->idle_rate[k] = values[k] / took;
}

static enum status open_pass(struct counting *c, struct pass *pass, double idle_s,
                             struct error *err)
{
    const char *names[GROUP_EVENTS_MAX];
    const struct group *group = &pass->group;
    if (!group->event_count)
        return STATUS_OK;
    for (int k = 0; k < group->event_count; k++)
        names[k] = group->events[k].name;
    pass->set = c->backend->open(names, group->event_count, group->system_wide, pass->reasons);
    if (!pass->set)
        return FAIL_NO_MEMORY(err);
    if (!has_event(pass)) {
        c->backend->close(pass->set);
        pass->set = NULL;
    } else if (group->system_wide) {
        watch_idle(c, pass, idle_s);
    }
    return STATUS_OK;
}

/* Passes that count something first, in their order. */
static enum status sort_passes(struct counting *c, struct error *err)
{
    struct pass *sorted = arena_array(&c->arena, (size_t)c->count + 1, sizeof(*sorted));
    int at = 0;
    if (!sorted)
        return FAIL_NO_MEMORY(err);
    for (int want = 1; want >= 0; want--) {
        for (int k = 0; k < c->count; k++)
            if ((c->passes[k].set != NULL) == want)
                sorted[at++] = c->passes[k];
        c->active = want ? at : c->active;
    }
    c->passes = sorted;
    return STATUS_OK;
}

static enum status open_all(struct counting *c, const struct counting_setup *setup,
                            struct error *err)
{
    c->passes = arena_array(&c->arena, (size_t)setup->group_count + 1, sizeof(*c->passes));
    if (!c->passes)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < setup->group_count; k++) {
        if (!group_matches(&setup->groups[k], &setup->cpu))
            continue;
        struct pass *pass = &c->passes[c->count++];
        pass->group = setup->groups[k];
        TRY(open_pass(c, pass, setup->idle_s, err));
    }
    return sort_passes(c, err);
}

enum status counting_open(const struct counting_setup *setup, struct counting **out,
                          struct error *err)
{
    struct counting *c = calloc(1, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    c->backend = setup->backend;
    c->cpu = setup->cpu;
    enum status status = open_all(c, setup, err);
    if (status != STATUS_OK)
        counting_close(c);
    else
        *out = c;
    return status;
}

void counting_close(struct counting *counting)
{
    for (int k = 0; k < counting->count; k++)
        if (counting->passes[k].set)
            counting->backend->close(counting->passes[k].set);
    arena_release(&counting->arena);
    free(counting);
}

int counting_passes(const struct counting *counting)
{
    return counting->active;
}

enum status counting_begin(struct counting *counting, int pass, struct error *err)
{
    char reason[COUNTERS_REASON] = "";
    struct pass *p = &counting->passes[pass];
    if (!counting->backend->start(p->set, reason))
        return FAIL(err, STATUS_FAILED, "%s: %s", p->group.file, reason);
    p->began_ns = clock_now_ns();
    return STATUS_OK;
}

enum status counting_end(struct counting *counting, int pass, int64_t executions, struct error *err)
{
    char reason[COUNTERS_REASON] = "";
    double values[GROUP_EVENTS_MAX];
    struct pass *p = &counting->passes[pass];
    double seconds = (double)(clock_now_ns() - p->began_ns) * 1e-9;
    if (!counting->backend->stop(p->set, values, reason))
        return FAIL(err, STATUS_FAILED, "%s: %s", p->group.file, reason);
    p->seconds += seconds;
    for (int k = 0; k < p->group.event_count; k++)
        p->sums[k] += values[k] - p->idle_rate[k] * seconds;
    p->executions += executions;
    return STATUS_OK;
}

/* ---- metrics ---- */

/* Why a formula has no value: the first of its events that could not be counted. */
static const char *reason_of(const struct pass *pass, const char *formula)
{
    for (int k = 0; k < pass->group.event_count; k++)
        if (pass->reasons[k][0] && formula_uses(formula, pass->group.events[k].id))
            return pass->reasons[k];
    return pass->executions ? "the formula divides by zero" : "nothing was executed";
}

/* "ops * 2; ops = amd64_fam19h_zen4::..." */
static const char *describe(struct counting *c, const struct pass *pass, const char *formula)
{
    const char *text = formula;
    for (int k = 0; k < pass->group.event_count && text; k++)
        text = arena_printf(&c->arena, "%s; %s = %s", text, pass->group.events[k].id,
                            pass->group.events[k].name);
    if (text && pass->group.system_wide)
        text = arena_printf(&c->arena, "%s; whole machine, idle rate subtracted", text);
    return text ? text : formula;
}

static struct profiler_metric evaluate(struct counting *c, const struct pass *pass,
                                       const struct group_metric *m)
{
    struct formula_value values[GROUP_EVENTS_MAX];
    struct profiler_metric metric = {m->name, m->unit, "", m->missing, NAN};
    if (!m->formula)
        return metric;
    for (int k = 0; k < pass->group.event_count; k++) {
        double each = pass->set && pass->executions && !pass->reasons[k][0]
                          ? pass->sums[k] / (double)pass->executions
                          : NAN;
        values[k] = (struct formula_value){pass->group.events[k].id, each};
    }
    metric.formula = describe(c, pass, m->formula);
    formula_evaluate(m->formula, values, pass->group.event_count, &metric.value, NULL);
    metric.reason = isnan(metric.value) ? reason_of(pass, m->formula) : "";
    return metric;
}

/* Of two metrics with one name the one with a value counts, else the first. */
static int add_metric(struct profiler_metric *metrics, int count, struct profiler_metric metric)
{
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, metric.name) == 0) {
            if (isnan(metrics[k].value) && !isnan(metric.value))
                metrics[k] = metric;
            return count;
        }
    if (count < PROFILER_METRICS_MAX)
        metrics[count++] = metric;
    return count;
}

int counting_read(struct counting *counting, struct profiler_metric *metrics)
{
    int count = 0;
    for (int k = 0; k < counting->count; k++) {
        const struct pass *pass = &counting->passes[k];
        for (int m = 0; m < pass->group.metric_count; m++)
            count = add_metric(metrics, count, evaluate(counting, pass, &pass->group.metrics[m]));
    }
    const char *reason =
        arena_printf(&counting->arena,
                     "no file in profilers/groups counts it on this CPU (%s family %" PRId64
                     " model %" PRId64 "): add one",
                     counting->cpu.vendor, counting->cpu.family, counting->cpu.model);
    for (int k = 0; k < ARRAY_COUNT(usual); k++)
        count = add_metric(metrics, count,
                           (struct profiler_metric){usual[k].name, usual[k].unit, "",
                                                    reason ? reason : "out of memory", NAN});
    return count;
}
