/* SPDX-License-Identifier: Apache-2.0
 * The settings of a MatchPriors node: read once for operator and kernel. */
#ifndef ENGINE_OPS_LIB_MATCH_H
#define ENGINE_OPS_LIB_MATCH_H

#include "engine/graph/graph.h"

enum { MATCH_BOXES, MATCH_LABELS, MATCH_PRIORS, MATCH_INPUTS };

/* What is larger by one part in so many is no larger: ties are ties in f32 as in double. */
static const double MATCH_TIE = 1e-4;

struct match {
    int64_t images, boxes, priors;     /* N, B, P */
    double threshold, background;      /* overlaps: at least, less than */
    double variance_xy, variance_size; /* of the encoding */
    bool best;                         /* each box has at least one prior */
};

struct match match_of(const struct node *node, const struct shape *boxes,
                      const struct shape *priors);

#endif
