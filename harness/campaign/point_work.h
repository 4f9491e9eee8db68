/* SPDX-License-Identifier: Apache-2.0
 *
 * For harness/campaign/point_*.c alone: one visit of a point at work. */
#ifndef HARNESS_CAMPAIGN_POINT_WORK_H
#define HARNESS_CAMPAIGN_POINT_WORK_H

#include "engine/graph/cost.h"
#include "harness/campaign/point_run.h"
#include "harness/campaign/record.h"
#include "harness/model/verify.h"

enum { COUNTS_MAX = 14 };

struct work {
    const struct point_job *job;
    struct point_state *state;
    struct target *target; /* of the state */
    struct arena *arena;   /* of the record */
    const char *phase;     /* what is done now */
    struct graph_cost cost;
    struct verification verification;
    bool verified;
    struct measurement measurement; /* of this visit */
    bool measured;
    struct levels_now before, after;
    double *step_ns;
    int step_repeats;
    enum precision precision;
    double peak, rss;
    struct counts counts[COUNTS_MAX];
    int count_count;
    bool *on_host; /* per step, of the record's arena */
    const struct profiler *attached_profiler;
    void *attached; /* what it gave before anything ran; NULL: nothing */
};

void work_phase(struct work *w, const char *phase);
/* With RIDGE_COUNT_FIRST=1: profilers that the point names and that may attach before anything runs
 * on its device do. What is timed then is not to be believed. */
void work_attach(struct work *w);
void work_detach(struct work *w);
/* The peak of the bursts around the samples or, where there are none, a ceiling of the run
 * (point_peak.c). */
void work_peak(const struct work *w, const struct point_record *stored, struct point_facts *facts);
/* Passes through all profilers that the point names (point_count.c). */
enum status work_count(struct work *w, struct error *err);

#endif
