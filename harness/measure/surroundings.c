/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/measure/surroundings.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "harness/watch/interrupt.h"

enum {
    FAST_PERIOD_NS = 50000, /* getrusage takes 0.6 us: 1 % of the shortest time between two */
    SLOW_PERIOD_NS = 10000000,
    WAIT_PERIOD_NS = 100000000, /* a microsecond or two for each thread */
    CHAIN = 3072,               /* cycles, about a microsecond */
    CLOCK_TRIES = 3,            /* the fastest of them was not interrupted */
    SPIN_NS = 100000,           /* sleeping is not more exact than this */
    NS_PER_S = 1000000000
};

#if defined(__x86_64__)
#define ADD "add %0, %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %0\n\t"
#else
#define ADD "" /* the clock is unknown there */
#endif

/* A chain of additions, each of which waits for the one before: one cycle each, on large and small
 * cores. A multiplication takes three cycles on some cores and five on others, even of one
 * processor. */
static double chain_ns(void)
{
    uint64_t x = 3, start = clock_now_ns();
    for (int k = 0; k < CHAIN / 16; k++)
        __asm__ volatile(ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD : "+r"(x));
    return ADD[0] ? (double)(clock_now_ns() - start) : NAN;
}

double cpu_clock_hz(void)
{
    double best = INFINITY;
    for (int k = 0; k < CLOCK_TRIES; k++)
        best = fmin(best, chain_ns());
    return isfinite(best) && best > 0 ? CHAIN / best * 1e9 : NAN;
}

/* The start of a file that the kernel makes anew for each read. */
static bool read_start(int fd, char *text, size_t size)
{
    ssize_t got = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static int64_t read_migrations(const struct real_time *t)
{
    char text[4096];
    if (!read_start(t->sched_fd, text, sizeof(text)))
        return RECORD_NONE;
    const char *line = strstr(text, "nr_migrations"), *colon = line ? strchr(line, ':') : NULL;
    return colon ? strtoll(colon + 1, NULL, 10) : RECORD_NONE;
}

static void look_at_gpu(const struct nvml_gauge *gauge, struct surroundings *out)
{
    struct nvml_now now = nvml_gauge_read(gauge);
    out->clock_hz = now.clock_hz;
    if (!isnan(now.heat_s))
        out->heat_ns = (int64_t)(now.heat_s * 1e9);
    out->slow = now.slow;
}

static int64_t cpu_time_ns(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * (int64_t)NS_PER_S +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * (int64_t)1000;
}

/* While the machine sleeps the monotonic clock stands still, and the other one advances. */
static int64_t asleep_ns(void)
{
    struct timespec with, without;
    if (clock_gettime(CLOCK_MONOTONIC, &without) || clock_gettime(CLOCK_BOOTTIME, &with))
        return RECORD_NONE;
    return (with.tv_sec - without.tv_sec) * (int64_t)NS_PER_S + with.tv_nsec - without.tv_nsec;
}

static void look(void *context, uint64_t now, struct surroundings *out)
{
    struct real_time *t = context;
    struct rusage usage;
    *out = surroundings_unknown();
    if (now < t->next_fast_ns)
        return;
    t->next_fast_ns = now + FAST_PERIOD_NS;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        out->context_switches = usage.ru_nvcsw + usage.ru_nivcsw;
        out->page_faults = usage.ru_minflt + usage.ru_majflt;
        out->disk_reads = usage.ru_majflt + usage.ru_inblock;
        out->cpu_ns = cpu_time_ns(&usage);
    }
    out->stops = interrupt_continued();
    if (now < t->next_slow_ns)
        return;
    out->asleep_ns = asleep_ns();
    t->next_slow_ns = now + SLOW_PERIOD_NS;
    out->steal_ns = stolen_time_ns(t->stolen);
    out->migrations = read_migrations(t);
    if (now >= t->next_wait_ns) {
        t->next_wait_ns = now + WAIT_PERIOD_NS;
        disturbance_look(&t->watch);
    }
    if (t->gauge.open)
        look_at_gpu(&t->gauge, out);
    else
        out->clock_hz = t->clock_elsewhere ? NAN : cpu_clock_hz();
}

static void watch(void *context)
{
    struct real_time *t = context;
    disturbance_begin(&t->watch, "");
    t->next_slow_ns = 0;
    t->next_wait_ns = clock_now_ns() + WAIT_PERIOD_NS;
}

static void watched(void *context, struct disturbance *out)
{
    struct real_time *t = context;
    disturbance_end(&t->watch, out);
}

static uint64_t now_ns(void *context)
{
    (void)context;
    return clock_now_ns();
}

static void sleep_until(void *context, uint64_t ns)
{
    (void)context;
    uint64_t now = clock_now_ns();
    if (ns > now + SPIN_NS) {
        uint64_t wake = ns - SPIN_NS;
        struct timespec until = {.tv_sec = (time_t)(wake / NS_PER_S),
                                 .tv_nsec = (long)(wake % NS_PER_S)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    while (clock_now_ns() < ns && !interrupt_requested())
        ;
}

void real_time_open(struct real_time *state, struct time_source *out)
{
    *state = (struct real_time){.stolen = stolen_time_open(""),
                                .sched_fd = open("/proc/self/sched", O_RDONLY | O_CLOEXEC)};
    *out = (struct time_source){.now_ns = now_ns,
                                .sleep_until = sleep_until,
                                .look = look,
                                .context = state,
                                .watch = watch,
                                .watched = watched};
}

void real_time_close(struct real_time *state)
{
    nvml_gauge_close(&state->gauge);
    disturbance_drop(&state->watch);
    stolen_time_close(state->stolen);
    state->stolen = NULL;
    if (state->sched_fd >= 0)
        close(state->sched_fd);
    state->sched_fd = -1;
}
