/* SPDX-License-Identifier: Apache-2.0
 *
 * Why the loss of a step is no finite number, and what may help. A smaller rate helps only where
 * this training has changed weights, and its samples are finite numbers. */
#ifndef HARNESS_TRAIN_BROKEN_H
#define HARNESS_TRAIN_BROKEN_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/run/exe.h"

struct broken_step {
    struct exe *exe; /* with the samples of the step */
    double loss;
    int64_t step;       /* from 1 */
    bool first;         /* of this training: no weight was changed before */
    const char *resume; /* the checkpoint that it went on from; NULL: none */
    const char *spec;
    double rate;
};

/* The first state that holds what is no finite number; NULL: none does. */
const char *broken_state(struct exe *exe);

/* STATUS_INVALID, with that in the error. */
enum status broken_step_fail(const struct broken_step *step, struct error *err);

#endif
