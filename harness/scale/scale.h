/* SPDX-License-Identifier: Apache-2.0
 *
 * One training on several ranks of this machine: processes that compute the same steps on different
 * samples and sum their gradients. First rank 0 alone compiles, so that the tuner's cache knows
 * every kernel; then all do, make sure that their plans are the same, train, and make sure that
 * they have come to the same weights. */
#ifndef HARNESS_SCALE_SCALE_H
#define HARNESS_SCALE_SCALE_H

#include "collective/communicator.h"
#include "harness/train/trainer.h"

enum { SCALE_STEPS_USUAL = 20, SCALE_DEADLINE_S = 60 };

struct scale_options {
    struct train_job job; /* model.batch: of each rank; model.threads: of each rank */
    int ranks;
    int shares; /* the CPUs are divided as if there were so many ranks; 0: by ranks */
    const struct backend *backend;
    const struct algorithm *algorithm; /* NULL: by size */
    bool no_thread;                    /* communication moves only while a step waits for it */
    int lanes;                         /* of each exchange; 0: as usual */
    uint64_t deadline_ns;
    bool launched; /* the backend's launcher has started all ranks, and this process is ... */
    int rank;
};

/* One exchange in the last step: a unit of gradients, or what else goes between ranks. */
struct scale_unit {
    int64_t bytes, messages, bytes_sent; /* by this rank */
    char operation[24], algorithm[24];
    uint64_t ready_ns, started_ns, ended_ns; /* since the step began */
    uint64_t waited_ns;
};

/* Per step, means of all steps but the first ones. */
struct scale_rank {
    double step_s;
    double communication_s; /* from the start of each unit to its end */
    double exposed_s;       /* the step stood still for units, until they started, too */
    double input_s;         /* the step waited for samples */
    double computing_s;     /* neither; not the mean but the median */
    int64_t state_bytes;    /* weights, moments and all else that outlives a step */
    int64_t work_bytes;     /* what a step needs beside them, as planned */
    struct scale_unit *units;
};

struct scale_result {
    int ranks, threads;
    int64_t batch; /* of all ranks */
    int64_t steps, warm_up;
    double step_s; /* median: from the end of a step on the last rank to that of the next */
    double samples_per_s;
    double *step_times; /* of each step, the first ones included */
    double *losses;     /* of each step */
    struct scale_rank *by_rank;
    int detailed; /* so many of them, the first ones, have units */
    int unit_count;
    bool simulated; /* nothing here was measured (harness/bench/step_simulate.h) */
};

/* FAILED where a rank did, with what it said or how it ended, or where an interrupt was requested.
 * Of ranks that a launcher started each calls it, and each gets the result, timed by its own clock.
 */
enum status scale_run(const struct scale_options *options, struct scale_result *out,
                      struct error *err);
void scale_result_release(struct scale_result *result);

#endif
