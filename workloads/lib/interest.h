/* SPDX-License-Identifier: Apache-2.0
 * What DIN and DIEN share: attention of a candidate over the history of a user (Zhou et al., "Deep
 * Interest Network for Click-Through Rate Prediction", KDD 2018). */
#ifndef WORKLOADS_LIB_INTEREST_H
#define WORKLOADS_LIB_INTEREST_H

#include "workloads/lib/layers.h"

/* steps 0 ... T - 1 that are before the end of each history: bool [N, T]; lengths i32 [N]. */
int interest_mask(struct graph *g, int lengths, int64_t steps);

struct interest {
    int64_t batch, steps, width; /* N, T, D */
    int query, history, mask;    /* [N, D], [N, T, D], bool [N, T] */
    double divisor;              /* of the scores */
};

/* A net of [q, h, q - h, q h] -> 80 -> 40 -> 1 with sigmoids gives a score per step; their softmax
 * over the real steps, [N, T]. */
int interest_weights(struct graph *g, const struct interest *a);

#endif
