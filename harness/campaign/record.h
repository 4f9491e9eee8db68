/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the rows that the store takes from everything that is known about a measured point. */
#ifndef HARNESS_CAMPAIGN_RECORD_H
#define HARNESS_CAMPAIGN_RECORD_H

#include "base/arena.h"
#include "engine/graph/cost.h"
#include "engine/run/exe.h"
#include "harness/measure/measure.h"
#include "harness/model/model_options.h"
#include "harness/model/verify.h"
#include "harness/suite/plan.h"
#include "profilers/lib/profiler.h"
#include "results/record.h"

struct step_count {
    int step;
    struct profiler_metric metric;
};

/* What one profiler said. */
struct counts {
    const char *source; /* the profiler's name */
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    int count;
    const struct step_count *steps; /* of those that count step by step */
    int step_count;
    char why[512]; /* room for the reason why it counted nothing */
};

/* Counts a point in a process of its own, where the profiler attaches before anything runs on the
 * device (harness/turns/count_apart.h). exe: what was compiled here; other kernels there are
 * refused. Text lives in the arena. */
typedef enum status count_apart(const struct point *point, const struct model_options *model,
                                const struct profiler *profiler, const struct exe *exe,
                                struct arena *arena, struct counts *out, struct error *err);

struct point_facts {
    const struct point *point;
    int sequence;
    const char *started_utc;
    double wall_s;
    const struct graph_cost *cost;           /* flops NAN: only the batch is known */
    const struct exe *exe;                   /* NULL on the null device */
    const struct measurement *measurement;   /* NULL: failed before */
    const struct verification *verification; /* NULL: not verified */
    const double *step_ns;                   /* per step; NULL: not timed apart */
    int step_repeats;
    double peak_flop_rate; /* of the point's precision; NAN: not known, because of ... */
    double byte_flops;     /* of the flops those that multiply bytes among others; 0: none */
    double byte_peak;      /* for them */
    const char *peak_reason;
    double peak_clock_hz; /* of the device when it was measured; 0: not known */
    const char
        *peak_name; /* what it is the rate of (harness/roofs/peak.h); NULL: a ceiling of the run */
    double peak_rss_bytes; /* NAN: not known */
    const struct counts *counts;
    int count_count;
    const struct error *failure; /* NULL: none */
    const struct visit_record *visits;
    int visit_count;
    double round_spread; /* of the visits' medians (harness/measure/visits.h); NAN: not known */
};

/* What the store keeps of a point; borrows its text. */
struct point_record record_point(const struct point *point);
/* Everything in *record lives in the arena or was borrowed from the facts. */
enum status record_make(const struct point_facts *facts, struct arena *arena, struct record *record,
                        struct error *err);
/* The record after another visit: times and the verdict are those of the facts, all else (work,
 * memory, steps, verification) is what `earlier` has. Borrows from it. */
enum status record_again(const struct point_facts *facts, const struct record *earlier,
                         struct arena *arena, struct record *record, struct error *err);
/* The row of a point that is not run. */
enum status record_skipped(const struct point *point, int sequence, const char *reason,
                           const char *started_utc, struct arena *arena, struct record *record,
                           struct error *err);
/* Value of the first metric of that name of the whole point; NAN when there is none. */
double record_value(const struct record *record, const char *name);
const struct metric_record *record_metric(const struct record *record, const char *name);
/* Whether steps on the reference kernel take 1 % of the point's time or more, or their share is not
 * known. */
bool record_reference_counts(const struct record *record);

#endif
