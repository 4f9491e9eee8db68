/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation over the samples of all ranks (Zhang et al. 2018, "Context Encoding";
 * PyTorch's SyncBatchNorm): ranks learn as one rank of the whole batch would. */
#ifndef ENGINE_TRAIN_SYNC_NORM_H
#define ENGINE_TRAIN_SYNC_NORM_H

#include "engine/graph/graph.h"

/* Before gradients are added: each BatchNormalization that takes its statistics from the batch gets
 * mean and variance as the means over `ranks` of theirs. They cost two exchanges in the forward
 * pass, which the step waits for, and as many in the backward pass. A ReduceMean over the first
 * axis alone, which a network that normalises by itself takes of its samples (Dice), becomes the
 * mean of all ranks as well. */
enum status synchronise_batch_norms(struct graph *g, int ranks, struct error *err);

#endif
