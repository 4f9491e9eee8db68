/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses that networks are trained with, as graphs. Where nothing else is said the result is the
 * mean over all elements, one number.
 */
#ifndef WORKLOADS_LIB_LOSSES_H
#define WORKLOADS_LIB_LOSSES_H

#include "engine/graph/graph.h"

/* No label means "does not count". */
#define COUNT_ALL INT64_MIN

/* logits [..., classes], labels [...] of i32 or i64; the mean over positions whose label is not
 * `ignored`. smoothing: the share of the target that all classes have in common (Szegedy et al.,
 * 2016). */
int cross_entropy(struct graph *g, int logits, int labels, double smoothing, int64_t ignored);
/* Of probabilities sigmoid(logits) and targets in [0, 1], of one shape; does not overflow. */
int binary_cross_entropy_with_logits(struct graph *g, int logits, int targets);
/* The same for each element. */
int binary_cross_entropy_of_each(struct graph *g, int logits, int targets);
/* Ends a network that learns to answer yes or no: log odds [N, 1] against an input of zeros and
 * ones called `answer`. Its outputs are the loss and the log odds, so named. */
void learn_yes_or_no(struct graph *g, int log_odds, const char *answer);
int mean_squared_error(struct graph *g, int x, int targets);
/* For each element: d^2 / (2 beta) where d = |x - target| is below beta, else d - beta / 2
 * (Girshick, "Fast R-CNN", 2015; beta times less than Huber's loss). */
int smooth_l1_of_each(struct graph *g, int x, int targets, double beta);

/* Sum and mean over all elements. */
int sum_of(struct graph *g, int x);
int mean_of(struct graph *g, int x);
/* sum(x weights) / max(1, sum(weights)); weights broadcast to x, which they select, say, from. */
int weighted_mean_of(struct graph *g, int x, int weights);

#endif
