/* SPDX-License-Identifier: Apache-2.0
 *
 * From the visits of a side to one number per process.
 *
 * A shared machine has levels that last for minutes: a run that takes two minutes meets a slow one
 * in some of its visits, rarely in all. So the lowest median among the visits counts. With n visits
 * and comparable processes of k <= n, it is the mean of the lowest over all choices of k, so that
 * more visits make a process steadier and not faster. */
#ifndef RESULTS_COMPARE_PROCESS_H
#define RESULTS_COMPARE_PROCESS_H

#include "results/compare.h"

enum { COMPARE_VISITS_MAX = 64 }; /* of a process; later ones are not looked at */

struct compare_process {
    double value;             /* logarithm */
    double slow[LEVEL_COUNT]; /* logarithms beside the visits that count; NAN: not known */
    double lowest, highest;   /* of the visits' medians */
    double noise;             /* variance of value as its two lowest visits show it; NAN: one */
    int visits;
};

/* Weight of the i-th lowest of n in the mean of the lowest over all choices of k. */
double compare_lowest_weight(int n, int k, int i);

/* medians: logarithms; slow: logarithms, NAN where not known. k: visits that every process has. */
struct compare_process compare_process(const double *medians, const double (*slow)[LEVEL_COUNT],
                                       int visits, int k);

struct compare_side_values {
    struct compare_process *processes; /* in order */
    double *sorted;                    /* their values */
    double *medians;                   /* of every visit, logarithms */
    double (*slow)[LEVEL_COUNT];       /* of every visit, logarithms, NAN where not known */
    int *first;                        /* visit of a process; [runs]: one past the last */
    int runs, visits, visits_least, samples;
    double within; /* mean square error of a visit's median by its own samples */
    double spread; /* largest distance of the quartiles in a visit */
    double effective;
};

/* Medians and their errors; processes wait for k. */
enum status compare_side_read(struct compare_side_values *values, const struct compare_side *side,
                              struct error *err);
void compare_side_settle(struct compare_side_values *values, int k);
void compare_side_release(struct compare_side_values *values);

void compare_log_slow(const double slow[LEVEL_COUNT], double out[LEVEL_COUNT]);

#endif
