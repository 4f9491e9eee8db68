/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides, point by point, whether HEAD is slower than BASE. Pure: samples in, verdicts out. How,
 * and why this way, is in docs/method.md, "Comparing"; in short:
 *
 *   1. A point with a failed, wrong or invalid result, or with too few samples, gets no ranking.
 *   2. What counts is one number per process, the lowest median among its visits, in logarithms, so
 *      that effects are ratios; in turns, the difference of each pair of visits.
 *   3. Its noise comes from between the visits, from between the runs compared, and from between
 *      earlier runs of one program on this machine; points lend each other what they know of it.
 *   4. Student's t gives interval and p; p is adjusted over all points (Benjamini, Hochberg).
 *   5. regressed or improved: adjusted p <= alpha, the effect is at least the limit, and it is more
 *      than this machine does by itself: beyond the runs of the same program known so far, or,
 *      while there are few, beyond the moves between visits.
 *      machine: the point moved, and the machine's own levels beside it moved as it did.
 *      unchanged: a change of `detect` is excluded, and what was seen is not half of it.
 *      Everything else is inconclusive.
 */
#ifndef RESULTS_COMPARE_H
#define RESULTS_COMPARE_H

#include <stdbool.h>

#include "base/error.h"
#include "results/level.h"

enum verdict {
    VERDICT_REGRESSED,
    VERDICT_IMPROVED,
    VERDICT_UNCHANGED,
    VERDICT_INCONCLUSIVE,
    VERDICT_MACHINE, /* the machine moved, and the point with it */
    VERDICT_INVALID, /* a side has no trustworthy numbers */
    VERDICT_FAILED,  /* HEAD failed or computed wrong numbers where BASE did not */
    VERDICT_MISSING, /* only in BASE */
    VERDICT_NEW,     /* only in HEAD */
    VERDICT_COUNT,
};

const char *verdict_name(enum verdict verdict);

enum side_state { SIDE_ABSENT, SIDE_USABLE, SIDE_FAILED, SIDE_INVALID };

/* The samples of one visit in the order in which they were taken, > 0, any unit of time. */
struct compare_visit {
    const double *times;
    int count;
    int run;                  /* of its side, from 0; visits of one run are neighbours */
    int round;                /* from 0, ascending within a run */
    double slow[LEVEL_COUNT]; /* seconds, or one over a rate; 0: not known */
};

struct compare_side {
    enum side_state state;
    const char *reason; /* of FAILED and INVALID */
    const struct compare_visit *visits;
    int visit_count;
};

enum { COMPARE_BASE_PROGRAM, COMPARE_HEAD_PROGRAM }; /* others count from there */

/* A visit of an earlier run on this machine in this environment, visits of one run neighbours. */
struct compare_past {
    int program; /* when BASE and HEAD are one program it is COMPARE_BASE_PROGRAM */
    int run;     /* any number that differs from that of the neighbouring run */
    double median;
    double slow[LEVEL_COUNT];
};

struct compare_point {
    struct compare_side base, head;
    bool paired; /* sample i of a round in base and in head were taken in turns */
    bool same_program;
    const struct compare_past *history; /* oldest run first; may hold steps; same unit of time */
    int history_count;
    /* How much slower the machine itself was in HEAD, by the ceilings that both runs measured:
     * rate in BASE / rate in HEAD. 0: not known. */
    double machine;
};

#define COMPARE_DETECT_IN_TURNS 0.05

/* Zero means the default. */
struct compare_rules {
    double limit;  /* smallest effect that raises an alarm; 0.02 */
    double detect; /* effect that must not go unnoticed, never less than limit; 0.05 in turns, 0.15
                      of runs apart */
    double allowance; /* sd between processes where too little is known; 0.0075 */
    double alpha;     /* false discovery rate; 0.01 */
};

struct comparison {
    enum verdict verdict;
    double base_median, head_median; /* of processes; earlier runs of BASE's program count */
    double ratio, ci_low, ci_high;   /* head / base with its 1 - alpha interval, not adjusted */
    double p, p_adjusted;
    double p_rank; /* HEAD among the runs of BASE's program (of pairs: sign test) */
    double mde;    /* relative slowdown found with probability 0.95 */
    double limit;  /* as applied: the rule's, or more where the history is noisy */
    bool ranked;   /* enough runs are known to hold HEAD's against; if not, swing counts */
    double swing;  /* the largest move that is known of this machine, between visits or runs */
    double noise;  /* relative sd of a process, as used */
    double df;     /* its degrees of freedom */
    double prior;  /* sd of the machine by all points together, and its degrees of freedom */
    double prior_df;
    char noise_from[64];       /* "visits, history, all points" */
    double level[LEVEL_COUNT]; /* how many times slower in HEAD than in BASE */
    int explained_by;          /* enum level, -1: none */
    int base_runs, head_runs, base_visits, head_visits, base_samples, head_samples;
    int history_runs; /* of BASE's program */
    double base_effective, head_effective;
    char reason[320]; /* why this verdict */
};

double compare_visit_median(const struct compare_visit *visit);

/* rules NULL: all defaults. Numbers that a point has not got are NAN. Fails only without memory. */
enum status compare_points(const struct compare_point *points, int count,
                           const struct compare_rules *rules, struct comparison *out,
                           struct error *err);

#endif
