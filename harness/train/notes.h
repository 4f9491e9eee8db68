/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint says of its training beside the states, and what another training must have in
 * common with it to go on from it. */
#ifndef HARNESS_TRAIN_NOTES_H
#define HARNESS_TRAIN_NOTES_H

#include "engine/train/checkpoint.h"
#include "harness/train/trainer.h"

enum { TRAIN_NOTES = 4 };

struct train_notes {
    char batch[32], micro_batches[32], data[96], sizes[400];
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

#endif
