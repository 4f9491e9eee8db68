/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel keeps for every process: CPU time, context switches, page faults. Needs no
 * counter and no permission, and shows why a time was long. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/system/clock.h"
#include "profilers/lib/profiler.h"

struct reading {
    double wall_s, user_s, system_s, switches_own, switches_forced, faults, faults_major;
};

struct session {
    struct reading begin, sum;
    int64_t executions;
};

static bool clock_available(char *reason, size_t size)
{
    snprintf(reason, size, "%s", "");
    return true;
}

static enum status clock_open(const struct profiler_model *model, int threads, void **session,
                              struct error *err)
{
    (void)model;
    (void)threads;
    *session = calloc(1, sizeof(struct session));
    return *session ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static int clock_passes(const void *session)
{
    (void)session;
    return 1;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static struct reading look(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage); /* cannot fail with a valid pointer */
    return (struct reading){
        .wall_s = (double)clock_now_ns() * 1e-9,
        .user_s = seconds(usage.ru_utime),
        .system_s = seconds(usage.ru_stime),
        .switches_own = (double)usage.ru_nvcsw,
        .switches_forced = (double)usage.ru_nivcsw,
        .faults = (double)usage.ru_minflt,
        .faults_major = (double)usage.ru_majflt,
    };
}

static enum status clock_begin(void *session, int pass, struct error *err)
{
    struct session *s = session;
    (void)pass;
    (void)err;
    s->begin = look();
    return STATUS_OK;
}

static enum status clock_end(void *session, int pass, int64_t executions, struct error *err)
{
    struct session *s = session;
    struct reading now = look(), *from = &s->begin, *sum = &s->sum;
    (void)pass;
    (void)err;
    sum->wall_s += now.wall_s - from->wall_s;
    sum->user_s += now.user_s - from->user_s;
    sum->system_s += now.system_s - from->system_s;
    sum->switches_own += now.switches_own - from->switches_own;
    sum->switches_forced += now.switches_forced - from->switches_forced;
    sum->faults += now.faults - from->faults;
    sum->faults_major += now.faults_major - from->faults_major;
    s->executions += executions;
    return STATUS_OK;
}

static int clock_read(void *session, struct profiler_metric *metrics)
{
    const struct session *s = session;
    const struct reading *r = &s->sum;
    const char *reason = s->executions > 0 ? "" : "nothing was executed";
    const double per = s->executions > 0 ? 1 / (double)s->executions : NAN;
    const struct profiler_metric all[] = {
        {"cpu_time_s", "s", "ru_utime + ru_stime", reason, (r->user_s + r->system_s) * per},
        {"cpu_time_system_s", "s", "ru_stime", reason, r->system_s * per},
        {"cpus_busy", "CPU", "(ru_utime + ru_stime) / wall time", reason,
         r->wall_s > 0 ? (r->user_s + r->system_s) / r->wall_s : NAN},
        {"context_switches_own", "1", "ru_nvcsw: it waited", reason, r->switches_own * per},
        {"context_switches_forced", "1", "ru_nivcsw: another took the CPU", reason,
         r->switches_forced * per},
        {"page_faults", "1", "ru_minflt", reason, r->faults * per},
        {"page_faults_major", "1", "ru_majflt: read from disk", reason, r->faults_major * per},
    };
    for (int k = 0; k < ARRAY_COUNT(all); k++)
        metrics[k] = all[k];
    return ARRAY_COUNT(all);
}

REGISTER(profiler, clock) = {
    .name = "clock",
    .summary = "CPU time, context switches and page faults of this process",
    .available = clock_available,
    .open = clock_open,
    .passes = clock_passes,
    .begin = clock_begin,
    .end = clock_end,
    .read = clock_read,
    .close = free,
};
