/* SPDX-License-Identifier: Apache-2.0
 *
 * Visits measured in turns: sample k of one was taken beside sample k of the other, so it is the
 * differences of such samples that count. What slows the machine for longer than two samples
 * slows both and drops out. */
#ifndef RESULTS_COMPARE_PAIRS_H
#define RESULTS_COMPARE_PAIRS_H

#include "results/compare.h"

enum { COMPARE_PAIRS_MAX = 64 };

struct compare_pairs {
    int count;
    double shift[COMPARE_PAIRS_MAX]; /* median of log(head) - log(base) within each pair */
    int base_visit[COMPARE_PAIRS_MAX], head_visit[COMPARE_PAIRS_MAX]; /* where the pair stands */
    double own[COMPARE_PAIRS_MAX]; /* square error of a shift by its own samples, per side ... */
    double within;                 /* ... and their mean */
    double p_sign;                 /* sign test over all differences, by effective number */
};

/* The k-th run of BASE belongs to the k-th of HEAD, and in them visits of the same round; a visit
 * without its other half is left out, and samples beyond the shorter half. count stays 0 when the
 * point is not paired or no visits belong together. */
enum status compare_pairs(const struct compare_point *point, struct compare_pairs *pairs,
                          struct error *err);
/* Pairs count by what is expected of their scatter, so that one whose samples were disturbed hardly
 * counts. Variances are those of a side of a pair of the weight that all have in the mean. */
struct compare_weighed {
    double shift;    /* the weighted mean */
    double expected; /* variance */
    double variance; /* the same, as the pairs scatter */
};

/* between > 0: variance that a pair has beside the error of its own samples, per side. */
struct compare_weighed compare_pairs_weigh(const struct compare_pairs *pairs, double between);

#endif
