/* SPDX-License-Identifier: Apache-2.0
 *
 * `ridge scale --simulate`: steps of a training on ranks that exist on paper. What a rank computes
 * takes as long as it took where it was measured, or as somebody says; what ranks exchange takes
 * what SimGrid makes of the same schedules on a network that a file describes. */
#ifndef HARNESS_BENCH_STEP_SIMULATE_H
#define HARNESS_BENCH_STEP_SIMULATE_H

#include "harness/scale/scale_print.h"

/* The step of one rank by itself. */
struct lone_step {
    double compute_s;
    struct lone_unit {
        int64_t bytes;
        double ready_s;
    } * units; /* owned; in the order in which they are ready */
    int unit_count;
    int threads;
};

/* As ranks of this workload, with this batch each, were measured last: the compute time is that of
 * a step without the time in which it stood still for others. FAILED where the database has no such
 * result. */
enum status lone_step_measured(const char *db, const char *workload, int64_t batch,
                               struct lone_step *out, struct error *err);
/* A step that takes compute_s: a unit is ready when its share of the FLOPs has been computed. */
enum status lone_step_planned(const struct train_job *job, double compute_s, struct lone_step *out,
                              struct error *err);
/* The units that so many ranks would usually have, where these are larger: those of the step,
 * joined. */
enum status lone_step_join(const struct lone_step *step, int ranks, struct lone_step *out,
                           struct error *err);
void lone_step_release(struct lone_step *step);

struct step_simulation {
    const char *platform; /* file */
    const struct lone_step *step;
    int ranks;
    int64_t batch, steps;              /* batch of each rank */
    const struct algorithm *algorithm; /* NULL: by size */
    enum dtype wire;                   /* DTYPE_NONE: as they are */
    bool no_overlap;                   /* nothing moves before the last unit is ready */
    int64_t unit_bytes;                /* of the step's units, where somebody said so; else 0 */
    struct schedule_options schedule;  /* a field that is 0: as usual */
};

/* `out` has units of the first few ranks alone. With one rank nothing is simulated. */
enum status step_simulate(const struct step_simulation *simulation, struct scale_result *out,
                          struct error *err);

#endif
