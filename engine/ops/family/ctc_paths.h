/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of CTCLoss and its gradient: logarithms of the sums over all paths of a sample
 * (engine/ops/lib/ctc.h) from their start and from their end, Graves et al. 2006, section 4.1. */
#ifndef ENGINE_OPS_FAMILY_CTC_PATHS_H
#define ENGINE_OPS_FAMILY_CTC_PATHS_H

#include "engine/ops/lib/ctc.h"

struct ctc_paths {
    struct ctc c;
    int64_t steps, states; /* of the sample */
    int64_t *symbol;       /* [states]: class */
    double *log_prob;      /* [T, C] */
    double *before;        /* [T, states]: of the paths up to this step, which is counted */
    double *after;         /* [T, states]: of what follows it */
    double total; /* log of the probability of the labels; -INFINITY: no path spells them */
};

/* Shapes of the four inputs from `first` on. */
enum status ctc_check(const struct infer *c, int first, struct error *err);
/* FLOPs of one pass over the steps and of the softmax before it. */
void ctc_cost(const struct infer *c, int first, double passes, struct cost *cost);

/* Room for any sample; ctc_paths_release also after a failure. */
enum status ctc_paths_init(struct ctc_paths *p, const struct ref_call *call, int first,
                           struct error *err);
/* Fills in sample n. Labels and lengths that cannot be fail. */
enum status ctc_paths_sum(struct ctc_paths *p, const struct ref_call *call, int first, int64_t n,
                          struct error *err);
void ctc_paths_release(struct ctc_paths *p);

#endif
