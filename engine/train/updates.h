/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of a step: what becomes of weights, once their gradients are there. */
#ifndef ENGINE_TRAIN_UPDATES_H
#define ENGINE_TRAIN_UPDATES_H

#include "engine/train/part_updates.h"
#include "engine/train/train.h"

/* First those whose gradients are each rank's own, then those whose are sums over all ranks
 * already, and last those of which each rank has columns. */
struct weights {
    int count, gathered_count, split_count;
    int *value, *gradient;
    bool *split, *gathered;
    struct part_units units; /* in place of the weights that are not split, where there are any */
};

/* NULL: the weight is trained as the recipe says. */
const struct recipe_group *recipe_group_of(const struct recipe *recipe, const char *weight);
/* Biases, and the scales and offsets of normalisations, have one dimension. */
bool weight_decays(const struct graph *g, const struct recipe *recipe,
                   const struct recipe_group *group, int weight);

/* Weights become states, and what comes after them is computed. */
enum status updates_add(struct graph *g, const struct recipe *recipe, struct weights *w,
                        const struct train_options *options, struct error *err);

#endif
