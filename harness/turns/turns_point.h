/* SPDX-License-Identifier: Apache-2.0
 *
 * What two programs did in turns at one point, over the rounds, and the records that come of it. */
#ifndef HARNESS_TURNS_TURNS_POINT_H
#define HARNESS_TURNS_TURNS_POINT_H

#include "base/arena.h"
#include "harness/campaign/point_run.h"
#include "harness/turns/turns_visit.h"

enum turns_which { TURNS_BASE, TURNS_HEAD };

struct turns_point {
    const struct point *point;
    int sequence;
    const char *refused;              /* why it is not measured in turns; NULL: it is */
    struct sample_record *samples[2]; /* owned */
    size_t count[2], capacity[2];
    struct visit_record *visits[2]; /* room for one a round, in the arena of turns_point_open */
    int visit_count;                /* the same for both */
    int complete;                   /* visits in which both were measured */
    long long block;                /* the most executions in a sample */
    double wall_s;
    struct error failure; /* code STATUS_OK: none */
    int failed;           /* the side that failed, -1: none */
    bool lacks_it;        /* and did so because it cannot run such a point at all */
};

enum status turns_point_open(struct turns_point *tp, const struct point *point, int sequence,
                             int rounds, struct arena *arena, struct error *err);
void turns_point_close(struct turns_point *tp);

/* Takes over what a visit brought. One that failed on a side is the point's last. */
enum status turns_point_add(struct turns_point *tp, const struct turns_visit *visit, int round,
                            const struct error *failure, struct arena *arena, struct error *err);

/* The record of a side by what there is so far. With a job HEAD is compiled, verified and counted
 * here, and the record lives in *state, which the caller releases; without one there are samples
 * alone. */
enum status turns_point_record(struct turns_point *tp, enum turns_which side,
                               const struct point_job *job, struct point_state *state,
                               struct arena *arena, struct record *record, struct error *err);

#endif
