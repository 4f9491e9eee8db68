/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in training judged by samples that it never sees: the loss's graph in the form without
 * updates (workload_open_judged), into which the training's states are copied by name. */
#ifndef HARNESS_TRAIN_JUDGE_H
#define HARNESS_TRAIN_JUDGE_H

#include "harness/model/model_options.h"

struct judge;
struct train_judgement;

/* trained: the executable of the steps, borrowed. model: with its batch. */
enum status judge_open(const char *spec, const struct model_options *model, uint64_t seed,
                       struct exe *trained, struct judge **out, struct error *err);
/* Fills loss and quality. */
enum status judge_run(struct judge *judge, struct train_judgement *judgement, struct error *err);
void judge_close(struct judge *judge);

#endif
