/* SPDX-License-Identifier: Apache-2.0
 *
 * What find_attention looks for: softmax(scale Q K' + mask) V. */
#ifndef ENGINE_COMPILE_PASSES_ATTENTION_MATCH_H
#define ENGINE_COMPILE_PASSES_ATTENTION_MATCH_H

#include "engine/compile/passes/mask.h"

enum { MASKS_MAX = 3, SEQUENCES_MAX = 65535 };

enum { QUERIES, KEYS, VALUES };

struct match {
    int64_t batch, heads, size;
    int64_t group;     /* neighbouring heads that share keys and values */
    int64_t length[3]; /* positions of queries, of keys and of values */
    int product[3];    /* factors of the two products */
    int masks, mask[MASKS_MAX];
    struct shape mask_shape[MASKS_MAX]; /* [batch or 1, heads or 1, S or 1, K or 1] */
    enum mask_kind choice; /* of a Where that hides what follows a query; MASK_OTHER: none */
    bool causal;
    double scale;
    bool guarded; /* NaN of the softmax counts as zero */
    int context;  /* the result */
};

/* From the second product, with the probabilities on the left; group is left to the caller. */
bool attention_match(const struct graph *g, const struct node *product, struct match *m);

#endif
