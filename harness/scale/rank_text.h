/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/scale: a training on several ranks of this machine, and how its rate grows with them.
 *
 * What ranks that learn together must have in common, as text for ranks_agree. */
#ifndef HARNESS_SCALE_RANK_TEXT_H
#define HARNESS_SCALE_RANK_TEXT_H

#include "harness/train/trainer.h"

/* All that decides what a step computes: the job, and each step with its shapes, attributes, kernel
 * and variant. Owned by the caller. */
char *plan_text(const struct train_job *job, const struct exe *exe);
/* What the updates have made of the weights: a line with a hash for each. Statistics of batches
 * are not among them: each rank has those of its own samples; nor what it has a part of. */
char *weights_text(struct exe *exe, const struct shards *shards);

#endif
