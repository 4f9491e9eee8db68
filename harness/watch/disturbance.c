/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/watch/disturbance.h"

#include <math.h>
#include <stdio.h>

#include "base/system/clock.h"

static const double limit = 0.02; /* of the CPU time: waiting */
static const double others_limit =
    0.05;                           /* the same, where threads of our own wait for each other */
static const double crowded = 1.05; /* threads wanted so many times what the CPUs have */
static const double blame = 0.25;   /* of the waiting: others ran at least for that long */

/* ---- watching ---- */

void disturbance_begin(struct disturbance_watch *w, const char *root)
{
    disturbance_drop(w);
    *w = (struct disturbance_watch){.root = root, .open = true};
    other_programs_begin(&w->programs, root);
    run_delay_open(&w->delay, root);
    w->began_s = (double)clock_now_ns() * 1e-9;
}

void disturbance_look(struct disturbance_watch *w)
{
    if (w->open)
        run_delay_read(&w->delay);
}

void disturbance_drop(struct disturbance_watch *w)
{
    if (!w->open)
        return;
    other_programs_drop(&w->programs);
    run_delay_close(&w->delay);
    w->open = false;
}

void disturbance_end(struct disturbance_watch *w, struct disturbance *out)
{
    double now_s = (double)clock_now_ns() * 1e-9;
    *out = disturbance_unknown("it was not watched");
    if (!w->open)
        return;
    run_delay_read(&w->delay);
    out->wall_s = now_s - w->began_s;
    out->unknown = run_delay_unknown(&w->delay);
    out->wait_s = out->unknown[0] ? NAN : (double)w->delay.wait_ns * 1e-9;
    out->run_s = (double)w->delay.run_ns * 1e-9;
    other_programs_end(&w->programs, &out->others);
    disturbance_drop(w);
}

/* ---- judging ---- */

static double cpu_time(const struct disturbance *d, int threads)
{
    int cpus = d->others.cpus > 0 && d->others.cpus < threads ? d->others.cpus : threads;
    return d->wall_s * (cpus > 0 ? cpus : 1);
}

double disturbance_share(const struct disturbance *d, int threads)
{
    return d->wall_s > 0 ? d->wait_s / cpu_time(d, threads) : NAN;
}

/* More threads of this process wanted to run than there are CPUs. */
static bool is_crowded(const struct disturbance *d, int threads)
{
    int cpus = d->others.cpus;
    return cpus > 0 && (threads > cpus || d->run_s + d->wait_s > crowded * d->wall_s * cpus);
}

static void name_busiest(const struct disturbance *d, char *text, size_t size)
{
    text[0] = '\0';
    if (d->others.busiest_s > 0)
        snprintf(text, size, " (busiest: %s, %.2g CPUs)", d->others.busiest,
                 d->others.busiest_s / d->wall_s);
}

static bool say_crowded(const struct disturbance *d, int threads, char *text, size_t size)
{
    snprintf(text, size,
             threads > d->others.cpus
                 ? "its %d threads share %d CPUs and wait for each other"
                 : "more of its threads than the point's %d wanted the %d CPUs: they wait for each "
                   "other",
             threads, d->others.cpus);
    return false;
}

bool disturbance_judge(const struct disturbance *d, int threads, char *text, size_t size)
{
    char busiest[96];
    const struct others *o = &d->others;
    double share = disturbance_share(d, threads), others = o->all_s / cpu_time(d, threads);
    text[0] = '\0';
    if (!(share > limit))
        return false;
    if (o->quota_s >= d->wait_s / 2) {
        snprintf(text, size,
                 "disturbed: the cgroup's CPU quota held it back for %.1f %% of the CPU time",
                 100 * share);
        return true;
    }
    bool crowd = is_crowded(d, threads);
    if (crowd && !(others > others_limit))
        return say_crowded(d, threads, text, size);
    if (!crowd && o->all_s < blame * d->wait_s) {
        snprintf(text, size, "threads waited for a CPU although little else ran");
        return false;
    }
    name_busiest(d, busiest, sizeof(busiest));
    double lost = crowd ? others : share; /* above 1: a tick is longer than what was measured */
    snprintf(text, size,
             "disturbed: %s%.1f %% of the CPU time went to other programs on this machine%s",
             lost > 1 ? "up to " : "", 100 * fmin(1, lost), busiest);
    return true;
}
