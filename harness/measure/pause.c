/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/measure/pause.h"

#include <math.h>
#include <stdio.h>

static const double hardly = 0.1;        /* of what a sample took too long: CPU time in it */
static const double stopped_gap = 0.25;  /* too long, of the usual time, after a stop */
static const double stopped_gap_s = .01; /* and at least so much */
static const double idle_gap = 10;       /* the same without a sign of a stop */
static const double idle_gap_s = 0.1;
static const double busy = 0.5; /* of the usual time: CPU time of a workload that does not wait */
static const double slept_s = 0.01;

enum pause_kind pause_judge(const struct pause_facts *sample, const struct pause_usual *usual)
{
    double excess_s = sample->wall_s - usual->wall_s;
    bool idle = sample->cpu_s - usual->cpu_s <= hardly * excess_s;
    if (sample->asleep_s > slept_s)
        return PAUSE_SLEPT;
    if (!(excess_s > 0) || !idle)
        return PAUSE_NONE;
    if (sample->stops > 0 && excess_s >= fmax(stopped_gap * usual->wall_s, stopped_gap_s))
        return PAUSE_STOPPED;
    bool far = excess_s >= fmax(idle_gap * usual->wall_s, idle_gap_s);
    bool waits = sample->reads > 0 || !(usual->cpu_s >= busy * usual->wall_s);
    return far && !waits ? PAUSE_IDLE : PAUSE_NONE;
}

void pauses_add(struct pauses *pauses, const struct pauses *more)
{
    pauses->count += more->count;
    pauses->longest_s = fmax(pauses->longest_s, more->longest_s);
    pauses->kind = more->kind > pauses->kind ? more->kind : pauses->kind;
}

static void time_text(double seconds, char text[32])
{
    snprintf(text, 32, seconds >= 10 ? "%.0f" : seconds >= 1 ? "%.1f" : "%.2g", seconds);
}

void pauses_text(const struct pauses *pauses, char *text, size_t size)
{
    static const char *const causes[] = {"", "the process was stopped or the machine slept",
                                         "the process was stopped", "the machine slept"};
    char longest[32];
    time_text(pauses->longest_s, longest);
    text[0] = '\0';
    if (pauses->count == 1)
        snprintf(text, size, "1 sample of %s s is set apart: %s", longest, causes[pauses->kind]);
    else if (pauses->count > 1)
        snprintf(text, size, "%lld samples of up to %s s are set apart: %s",
                 (long long)pauses->count, longest, causes[pauses->kind]);
}
