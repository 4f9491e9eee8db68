/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training came to, in numbers and words for people. */
#ifndef HARNESS_TRAIN_RESULT_TEXT_H
#define HARNESS_TRAIN_RESULT_TEXT_H

#include "harness/train/trainer.h"

/* Mean over the last tenth of the steps: a single batch's is noisy. NAN: there were none. */
double train_last_loss(const struct train_result *result);
/* NAN: nothing was timed. */
double train_samples_per_s(const struct train_result *result);
/* "0.3127"; of a training that diverged "not a number" or "infinite": what printf calls "-nan" has
 * no sign. Gives text. */
const char *train_loss_text(double loss, char *text, size_t size);
/* "loss 0.31, accuracy 0.9312, top-5 0.9981", "loss 0.17, AUC 0.9824 (at best 0.9860)"; q NULL: the
 * loss alone. */
void train_judgement_text(const struct quality *q, const struct train_judgement *j, char *text,
                          size_t size);

#endif
