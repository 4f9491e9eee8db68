/* SPDX-License-Identifier: Apache-2.0
 *
 * One point from its graph to its record. */
#ifndef HARNESS_POINT_RUN_H
#define HARNESS_POINT_RUN_H

#include "base/arena.h"
#include "harness/model_options.h"
#include "harness/peak.h"
#include "harness/plan.h"
#include "harness/progress.h"
#include "results/record.h"

struct point_job {
    const struct point *point;
    int sequence;
    const struct model_options *model;
    const struct ceiling_list *ceilings; /* of the run */
    struct progress *progress;
    struct error *lost; /* set when the point's device was lost, with what was done then */
};

/* Never fails for the point's own sake: that is a record too. The record lives in the arena, its
 * samples in *samples, which the caller frees. */
enum status point_run(const struct point_job *job, struct arena *arena, struct record *record,
                      struct sample_record **samples, struct error *err);

#endif
