/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in training judged by samples that it never sees: the loss's graph in the form without
 * updates (workload_open_judged), into which the training's states are copied by name. */
#ifndef HARNESS_TRAIN_JUDGE_H
#define HARNESS_TRAIN_JUDGE_H

#include "harness/model/model_options.h"
#include "workloads/data/data.h"

struct judge;
struct train_judgement;

/* trained: the executable of the steps, borrowed, as is data. model: with its batch. data NULL:
 * samples are made up. */
enum status judge_open(const char *spec, const struct model_options *model, uint64_t seed,
                       const struct data_set *data, struct exe *trained, struct judge **out,
                       struct error *err);
/* What the qualities of a judgement are; NULL: there are none. */
const struct quality *judge_quality(const struct judge *judge);
/* Fills loss and qualities. */
enum status judge_run(struct judge *judge, struct train_judgement *judgement, struct error *err);
void judge_close(struct judge *judge);

#endif
