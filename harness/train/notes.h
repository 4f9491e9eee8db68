/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint says of its training beside the states, and what another training must have in
 * common with it to go on from it. */
#ifndef HARNESS_TRAIN_NOTES_H
#define HARNESS_TRAIN_NOTES_H

#include "engine/train/checkpoint.h"
#include "harness/train/trainer.h"

enum { TRAIN_NOTES = 6 };

struct train_notes {
    char batch[32], micro_batches[32], data[96], sizes[400], rate[32], steps[32];
    struct safetensors_note
        list[TRAIN_NOTES]; /* of these, for checkpoint_save; it points into them */
};

/* batch: of all ranks; data NULL: samples are made up. */
void train_notes_make(struct train_notes *notes, const struct train_job *job, int64_t batch,
                      const struct data_set *data);
/* Whether a training with these notes may go on from a checkpoint, for which .resume of its job
 * stands. */
enum status train_notes_check(const struct train_notes *notes, const struct train_job *job,
                              const struct checkpoint *from, struct error *err);

/* What was said on the command line, so that a checkpoint's does not take its place. */
struct train_given {
    bool seed, rate, steps; /* steps: or epochs */
};

/* How far the checkpoint is, and the steps and the rate that it was trained with; 0, NAN: it does
 * not say. */
struct train_resumed {
    int64_t step, steps;
    double rate;
};

/* Before trainer_open, of a job with .resume: takes the seed, the steps and the rate of the
 * checkpoint where none were given: most schedules spread over all steps. FAILED where another seed
 * was; another rate or another end may be wanted. */
enum status train_resume(struct train_job *job, const struct train_given *given,
                         struct train_resumed *from, struct error *err);
/* "s3.ckpt: goes on after step 3, with seed 7 of the checkpoint and rate 0.1, not 0.05 as before"
 */
void train_resume_text(const struct train_job *job, const struct train_given *given,
                       const struct train_resumed *from, char *text, size_t size);

#endif
