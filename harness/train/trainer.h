/* SPDX-License-Identifier: Apache-2.0
 *
 * A training: the step graph of a workload compiled, run as often as wanted on batches that are
 * read ahead, and its weights judged by samples that were held out.
 *
 * Ranks that learn together (job.model.comm) have a trainer each, of the same job: each takes its
 * part of every step's samples, `model.batch` of them, so that N ranks see what one rank with N
 * times the batch would. Losses are those of all; the first rank writes checkpoints; none judges.
 *
 * Life cycle: trainer_open (slow: compiles); trainer_run once; trainer_close. */
#ifndef HARNESS_TRAIN_TRAINER_H
#define HARNESS_TRAIN_TRAINER_H

#include "harness/model/model_options.h"
#include "harness/train/reader.h"

struct train_job {
    const char *spec;
    struct model_options model;
    struct recipe recipe; /* schedule.steps: of the whole training */
    uint64_t seed;        /* of samples, and of first weights where it is not 0 */
    int64_t eval_every;   /* steps; 0: at the end only */
    const char *save;     /* checkpoint to write; NULL: none */
    int64_t save_every;   /* steps; 0: at the end only */
    const char *resume;   /* checkpoint to go on from; NULL: none. Its seed replaces this one */
    bool sync_norms;      /* with model.comm: statistics of batch normalisations are those of all */
    int64_t unit_bytes;   /* with model.comm: of gradients that travel together; 0: as usual */
};

/* What held-out samples say. */
struct train_judgement {
    int64_t step; /* after so many */
    double loss;
    double quality; /* NAN: this workload is judged by its loss alone */
};

struct train_result {
    int64_t first;                        /* steps that a checkpoint had made before */
    int64_t steps;                        /* that were made, those included */
    double *losses;                       /* one per step from `first` on; owned by the trainer */
    const struct train_judgement *judged; /* owned by the trainer */
    int judged_count;
    uint64_t time_ns;   /* of all steps, waiting included; without held-out samples */
    uint64_t waited_ns; /* of that, for input */
    int64_t batch;      /* of all ranks */
};

/* How far it is. losses[steps - first - 1] is the last one; judged may be of earlier steps. */
struct train_progress {
    const struct train_result *so_far;
    int64_t steps; /* wanted */
    double rate;
};

/* After each step; false ends the training. */
typedef bool train_watch(void *context, const struct train_progress *progress);

struct trainer;

/* The job of a workload and its recipe. tiny: its small form, which learns within seconds. *spec is
 * allocated: free it. */
enum status train_job_of(const char *spec, bool tiny, struct train_job *job, char **owned_spec,
                         struct error *err);

enum status trainer_open(const struct train_job *job, struct trainer **out, struct error *err);
/* INVALID where a loss is not a number. What was reached stands in *result in any case. */
enum status trainer_run(struct trainer *trainer, train_watch *watch, void *context,
                        struct train_result *result, struct error *err);
const struct training *trainer_of(const struct trainer *trainer);
struct exe *trainer_exe(struct trainer *trainer);
void trainer_close(struct trainer *trainer);

#endif
