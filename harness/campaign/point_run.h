/* SPDX-License-Identifier: Apache-2.0
 *
 * One point from its graph to its record, in one visit or several. The first visit compiles,
 * verifies, samples, times the steps and counts; those after it sample. */
#ifndef HARNESS_CAMPAIGN_POINT_RUN_H
#define HARNESS_CAMPAIGN_POINT_RUN_H

#include "base/arena.h"
#include "engine/graph/cost.h"
#include "harness/campaign/progress.h"
#include "harness/campaign/record.h"
#include "harness/campaign/target.h"
#include "harness/measure/measure.h"
#include "harness/measure/pause.h"
#include "harness/model/model_options.h"
#include "harness/roofs/levels.h"
#include "harness/roofs/peak.h"
#include "harness/suite/plan.h"
#include "results/record.h"

/* All visits of a point that were taken by other processes (harness/turns/turns.h). */
struct visits_taken {
    const struct measurement *whole; /* of them all, its samples too */
    const struct visit_record *visits;
    int count;
    double spread; /* between them (harness/measure/visits.h) */
};

struct point_job {
    const struct point *point;
    int sequence;
    int round, rounds; /* this one, from 0, and how many are planned */
    const struct model_options *model;
    const struct ceiling_list *ceilings; /* of the run */
    struct levels *levels;               /* NULL: none are read */
    struct progress *progress;
    const struct placement *usual;    /* of the run; NULL: not known yet */
    bool wait_for_usual;              /* no visit is made where it does not come soon */
    const struct visits_taken *taken; /* instead of sampling; NULL: samples are taken here */
    struct error *lost; /* set when the point's device was lost, with what was done then */
    /* Called when the point could not be compiled: releases memory that waiting points hold. True:
     * another try is worthwhile. */
    bool (*make_room)(void *context);
    void *make_room_context;
    count_apart *apart; /* NULL: it is not done */
};

/* What is kept between two visits of a point. Zeroed: it was not visited. */
struct point_state {
    struct arena arena;   /* of the record and the visits */
    struct record record; /* of the visits so far */
    bool has_record;
    struct visit_record *visits; /* with room for POINT_VISITS(planned) */
    int visit_count;
    struct measurement latest; /* the latest visit, without its samples */
    struct graph_cost cost;
    struct sample_record *samples; /* owned */
    int64_t sample_count;
    struct pauses set_apart; /* samples that were not the workload's */
    double visit_s;          /* that the latest visit took */
    struct target target;
    bool open;             /* the target is compiled, and in memory */
    double resident_bytes; /* that it takes there; NAN: not known */
    bool interrupted;      /* during the latest visit, of which nothing was kept */
    bool passed_over;      /* the latest visit did not take place: the usual placement did not
                              come */
};

/* Visits beyond those planned make up for others that do not count. */
#define POINT_VISITS(planned) (2 * (planned) + 1)

/* Never fails for the point's own sake: that is a record too. Leaves the target open: point_rest or
 * point_close is next. */
enum status point_visit(const struct point_job *job, struct point_state *state, struct error *err);
/* When the run is over and its usual placement known: visits that were measured in another are set
 * apart, and the record is made again where that changes it. */
enum status point_settle(const struct point_job *job, struct point_state *state, bool *changed,
                         struct error *err);
/* Its threads end; the next visit begins with fresh ones. */
void point_rest(struct point_state *state);
void point_close(struct point_state *state);
void point_release(struct point_state *state);

#endif
