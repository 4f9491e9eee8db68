/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a training goes on, in steps, epochs and sizes of images, and when it is judged. */
#ifndef HARNESS_TRAIN_SPAN_H
#define HARNESS_TRAIN_SPAN_H

#include "harness/train/trainer.h"

struct span {
    const struct train_job *job;
    int64_t batch;         /* of all ranks */
    int64_t epoch_samples; /* 0: samples are made up, and a tenth of the training is an epoch */
};

/* The step after the last one of a size of the job. */
int64_t span_size_end(const struct span *span, int size);
/* Sets *steps as .epochs or .sizes of the job ask for; else it stays. */
enum status span_steps(const struct span *span, int64_t *steps, struct error *err);

/* From here on the job's schedule says how many steps there are. */
bool span_is_judged(const struct span *span, int64_t steps); /* after so many */
int64_t span_judgements(const struct span *span);            /* at most */
/* Epochs after so many steps: whole where the last one ended an epoch, which may have begun the
 * next one. */
double span_epoch(const struct span *span, int64_t steps);

#endif
