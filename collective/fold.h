/* SPDX-License-Identifier: Apache-2.0
 *
 * For algorithms that need a power of two: P + extra ranks are folded to P. Of the first 2 extra
 * ranks each even one hands its elements to the odd one above it, rests, and gets the result. */
#ifndef COLLECTIVE_FOLD_H
#define COLLECTIVE_FOLD_H

#include "collective/algorithm.h"

struct fold {
    int power, extra;
    int index;        /* of this rank among the P, NOBODY while it rests */
    enum place holds; /* where its elements are when the P begin */
};

struct fold fold_of(const struct pattern *pattern);
/* The rank that has this index. */
int fold_rank(const struct fold *fold, int index);
/* Before and after the P work on a part of the output. */
void fold_in(const struct fold *fold, struct comm_schedule *to, int lane, struct span part);
void fold_out(const struct fold *fold, struct comm_schedule *to, int lane, struct span part);

#endif
