/* SPDX-License-Identifier: Apache-2.0
 *
 * An optimiser's state divided among the ranks (Rajbhandari et al. 2020, "ZeRO", stage 1). Weights
 * are gathered in units. Of a unit's gradients each rank gets the sums of its part (ReduceScatter),
 * updates its part of the weights with the moments of that part, and gives it to the others
 * (AllGather). As many bytes cross as without it; moments take 1 / ranks of the memory. */
#ifndef ENGINE_TRAIN_PART_UPDATES_H
#define ENGINE_TRAIN_PART_UPDATES_H

#include "engine/train/shards.h"

/* Weights that are updated together. */
struct part_unit {
    int count;
    const int *weights;
    int like; /* one of them: all are of its kind */
    int own;  /* this rank's part of them, [S] */
    int gradient;
    int after; /* what the optimiser makes of own; the caller sets it */
};

struct part_units {
    struct part_unit *of;
    int count;
    int ranks, rank;
    int64_t unit_bytes; /* 0: as usual */
    const char *wire;   /* of the gradients, as in struct reduction */
};

/* Weights, their gradients, and of what kind they are: only equal kinds share a unit. The arrays of
 * units are the graph's. */
enum status part_units_make(struct graph *g, int count, const int *weights, const int *gradients,
                            const int *kinds, struct part_units *units, struct error *err);
/* The state `slot` of a unit is that of its weights, which one rank alone would call
 * "WEIGHT.suffix". */
enum status part_unit_shards(const struct graph *g, const struct part_units *units, int unit,
                             int slot, const char *suffix, struct shards *shards,
                             struct error *err);
/* After all updates: every rank gets all weights. */
enum status part_units_join(struct graph *g, const struct part_units *units, struct error *err);

#endif
