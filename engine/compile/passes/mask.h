/* SPDX-License-Identifier: Apache-2.0
 *
 * What fixed masks of attention hide. */
#ifndef ENGINE_COMPILE_PASSES_MASK_H
#define ENGINE_COMPILE_PASSES_MASK_H

#include "engine/graph/op.h"

/* What a mask that is added to scores, or a choice between scores and a number, comes to. */
enum mask_kind {
    MASK_OTHER,
    MASK_CAUSAL,    /* hides the keys after a query's own, all others count as they are */
    MASK_CAUSAL_BIG /* the same by a finite number, so that what is hidden may come back where
                       another mask hides the rest */
};

/* The last query is that of the last key. */
enum mask_kind mask_of_sum(const struct graph *g, int mask, int64_t queries, int64_t keys);
/* Where(choice, scores, number), or with `hides` Where(choice, number, scores). */
enum mask_kind mask_of_choice(const struct graph *g, int choice, bool hides, double number,
                              int64_t queries, int64_t keys);

/* Whether a mask that is added may leave a query without keys. */
bool mask_may_leave_nothing(const struct graph *g, int mask);

#endif
