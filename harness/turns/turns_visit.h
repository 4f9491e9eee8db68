/* SPDX-License-Identifier: Apache-2.0
 *
 * One visit of a point by two programs: both are started afresh, one after the other, warmed up,
 * and take turns sample by sample, A B B A, so that whatever happens to the machine happens to
 * both.
 *
 * An execution after the other program's finds caches that are not its own and threads that still
 * spin; where it is short that would be most of its time. So a turn begins with executions that do
 * not count, and a sample of a short one is the mean of as many as last two milliseconds. */
#ifndef HARNESS_TURNS_TURNS_VISIT_H
#define HARNESS_TURNS_TURNS_VISIT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text/utc.h"
#include "harness/roofs/levels.h"

enum { TURNS_SAMPLES_MAX = 4000 };

struct turns_side {
    const char *name;               /* for messages */
    const char *const *command;     /* NULL at the end */
    const char *const *environment; /* "KEY=VALUE" over the caller's own; NULL: nothing */
};

struct turns_rules {
    int pairs_min, pairs_max; /* of samples; pairs_min is not reached when ... */
    double seconds_max;       /* ... sampling took so long, but two pairs are taken in any case */
    double seconds_min;       /* of sampling, both programs together */
    double start_s, sample_s; /* limits for starting and for a sample */
    int first;                /* which side starts: 0, 1 */
    bool host;                /* the CPUs compute: their clock is looked at */
    struct levels *levels; /* what the machine can do is read beside the turns; NULL: it is not */
    enum precision precision; /* of the point, for them */
    int cpus;                 /* that compute */
};

/* What was seen around the turns; NAN where it cannot be known. */
struct turns_seen {
    double steal_share; /* other virtual machines: of the time of the CPUs that we may run on */
    double
        wait_share; /* our threads, ready to run, without a CPU: of the time that they asked for */
    double clock_hz;
    struct levels_now before, after;
};

struct turns_visit {
    char started_utc[UTC_TEXT];
    double *ms[2]; /* count each, owned: allocated by turns_visit_take */
    int count;
    long long block; /* executions per sample */
    double seconds;  /* of the visit, with starting */
    struct turns_seen seen;
    int failed;    /* the side that failed; -1: none */
    int exit_code; /* of that side; -1: none */
    bool interrupted;
};

/* Fails when memory is out; else with the reason of the side that failed or was interrupted. */
enum status turns_visit_take(const struct turns_side side[2], const struct turns_rules *rules,
                             struct turns_visit *visit, struct error *err);
void turns_visit_release(struct turns_visit *visit);

#endif
