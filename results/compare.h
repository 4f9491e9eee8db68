/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides, point by point, whether HEAD is slower than BASE. Pure: samples in, verdicts out. How,
 * and why this way, is in docs/method.md, "Comparing"; in short:
 *
 *   1. A point with a failed, wrong or invalid result, or with too few samples, gets no ranking.
 *   2. What counts is the median of each process, in logarithms, so that effects are ratios.
 *   3. The spread of medians between processes comes from the runs compared, from the history of
 *      the same point on the same machine, and from an allowance where both say little; never less
 *      than what the samples inside the processes, worth their effective number, allow.
 *   4. Student's t gives interval and p; p is adjusted over all points (Benjamini, Hochberg).
 *   5. regressed or improved: adjusted p <= alpha and the effect is at least the limit.
 *      unchanged: a change of `detect` is excluded. Everything else is inconclusive, and so is
 *      an effect that the machine's own ceilings show just as well.
 */
#ifndef RESULTS_COMPARE_H
#define RESULTS_COMPARE_H

#include <stdbool.h>

#include "base/error.h"

enum verdict {
    VERDICT_REGRESSED,
    VERDICT_IMPROVED,
    VERDICT_UNCHANGED,
    VERDICT_INCONCLUSIVE,
    VERDICT_INVALID, /* a side has no trustworthy numbers */
    VERDICT_FAILED,  /* HEAD failed or computed wrong numbers where BASE did not */
    VERDICT_MISSING, /* only in BASE */
    VERDICT_NEW,     /* only in HEAD */
    VERDICT_COUNT,
};

const char *verdict_name(enum verdict verdict);

enum side_state { SIDE_ABSENT, SIDE_USABLE, SIDE_FAILED, SIDE_INVALID };

/* The samples of one process in the order in which they were taken, > 0, any unit of time. */
struct compare_series {
    const double *times;
    int count;
};

struct compare_side {
    enum side_state state;
    const char *reason; /* of FAILED and INVALID */
    const struct compare_series *runs;
    int run_count;
};

struct compare_point {
    struct compare_side base, head;
    bool paired; /* sample i of base.runs[k] and of head.runs[k] were taken in turns */
    /* Medians of earlier runs of this point on this machine, oldest first; may hold steps. */
    const double *history;
    int history_count;
    /* How much slower the machine itself was in HEAD, by the ceilings that both runs measured:
     * rate in BASE / rate in HEAD. 0: not known. */
    double machine;
};

/* Zero means the default. */
struct compare_rules {
    double limit;     /* smallest effect that raises an alarm; 0.02 */
    double detect;    /* effect that must not go unnoticed; 0.05, never less than limit */
    double allowance; /* sd between processes that is taken for granted; 0.0075 */
    double alpha;     /* false discovery rate; 0.01 */
};

struct comparison {
    enum verdict verdict;
    double base_median, head_median; /* of the medians of the processes */
    double ratio, ci_low, ci_high;   /* head / base with its 1 - alpha interval, not adjusted */
    double p, p_adjusted;
    double p_rank; /* Mann-Whitney (of pairs: sign test) over samples, by effective number */
    double mde;    /* relative slowdown found with probability 0.95 */
    double limit;  /* as applied: the rule's, or more where the history is noisy */
    double noise;  /* relative sd of the median of a process, as used */
    double df;     /* its degrees of freedom; INFINITY when it is the allowance alone */
    const char *noise_from;
    int base_runs, head_runs, base_samples, head_samples;
    double base_effective, head_effective;
    char reason[256]; /* why this verdict */
};

/* rules NULL: all defaults. Numbers that a point has not got are NAN. Fails only without memory. */
enum status compare_points(const struct compare_point *points, int count,
                           const struct compare_rules *rules, struct comparison *out,
                           struct error *err);

#endif
