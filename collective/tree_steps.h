/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary tree over all ranks, by their places: place 0 is the root, and the children of place p
 * are 2 p + 1 and 2 p + 2; so the upper half of the places are leaves. */
#ifndef COLLECTIVE_TREE_STEPS_H
#define COLLECTIVE_TREE_STEPS_H

#include "collective/algorithm.h"

struct tree {
    struct comm_schedule *to;
    int parent, children[2]; /* ranks, or NOBODY */
    int depth;
};

/* Places are ranks counted from the root on; mirrored: from it downwards. */
struct tree tree_of(const struct pattern *pattern, struct comm_schedule *to, int root,
                    bool mirrored);
/* Hands the parent's elements to the children; `have`: where the root has them. */
void tree_down(const struct tree *tree, int lane, struct span part, enum place have);

/* Up and down, down after up by the depth of the tree: a rank has more segments to add while the
 * first one is on its way to the root. Segment `k` of `segments`; k goes on to segments + lag. */
void tree_all_reduce(const struct tree *tree, int lane, struct span whole, int64_t k,
                     int64_t segments, int64_t lag);

#endif
