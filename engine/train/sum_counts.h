/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses that divide by how many words, places or boxes of their batch count. If each
 * rank divided by its own number, what a rank with few of them has would weigh too much: the mean
 * over ranks of means over unequal numbers is not the mean over all. */
#ifndef ENGINE_TRAIN_SUM_COUNTS_H
#define ENGINE_TRAIN_SUM_COUNTS_H

#include "engine/graph/graph.h"

/* Before gradients are added: a cross-entropy that leaves out labels becomes its sum, divided by
 * 1 / `ranks` of the labels that count on all of them; so does what is divided by max(1, a sum over
 * a whole value). The mean of such losses over ranks is the loss of all samples. Of each the ranks
 * exchange one number, as soon as it is known. */
enum status sum_counts(struct graph *g, int ranks, struct error *err);

#endif
