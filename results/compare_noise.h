/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a process differs from the next one of the same program on this machine: what each point
 * shows, and what all points of a comparison show together. */
#ifndef RESULTS_COMPARE_NOISE_H
#define RESULTS_COMPARE_NOISE_H

#include "results/compare_pairs.h"
#include "results/compare_process.h"

/* Earlier runs, one process each, in order. */
struct compare_past_values {
    struct compare_process *processes;
    int *program;
    int count;
    double *medians; /* of their visits with the levels beside them, for compare_machine.h */
    double (*slow)[LEVEL_COUNT];
    int *visit_program;
    int visits;
};

enum compare_source {
    COMPARE_FROM_VISITS = 1,
    COMPARE_FROM_RUNS = 2,
    COMPARE_FROM_HISTORY = 4,
    COMPARE_FROM_POINTS = 8,
    COMPARE_FROM_ALLOWANCE = 16,
};

/* All that is known of a point before points lend each other anything. */
struct compare_known {
    bool judged;             /* false: nothing else is set */
    bool placed;             /* what of the machine's placement each side met is known */
    bool base_met, head_met; /* the usual one (results/compare_match.h) */
    struct compare_side_values base, head;
    struct compare_past_values past;
    struct compare_pairs pairs;
    double *program; /* BASE and the earlier runs of its program, sorted; none in turns */
    int program_runs;
    double effect, share; /* logarithm; its error is share times the noise of a process */
    double variance, df;  /* of a process, by this point alone; df 0: it shows nothing */
    double expected;      /* variance of a process: the allowance, or by the samples of pairs */
    double between;       /* degrees of freedom that come from between runs */
    double history;       /* sd between runs, NAN: too few earlier ones */
    double range;         /* largest distance of visits of a side, or of runs of BASE's program;
                             NAN: only one is known */
    unsigned sources;     /* enum compare_source */
};

/* What all points show together. */
struct compare_machine_noise {
    double variance, df; /* of the prior, in multiples of what is expected of a point */
    double scatter;      /* sd of a process by the effects around their common shift; NAN: few */
    double swing;        /* largest move that is known of the machine */
    bool pooled;         /* from enough points; else the rule's allowance */
    double level[LEVEL_COUNT]; /* sd of a level between neighbouring visits */
};

enum status compare_known_make(struct compare_known *known, const struct compare_point *point,
                               struct error *err);
void compare_known_release(struct compare_known *known);

/* Pairs are weighed here, once it is known what they have in common. */
enum status compare_pool(struct compare_known *known, int count, const struct compare_rules *rules,
                         struct compare_machine_noise *machine, struct error *err);
/* Variance that the other points let expect of this one. */
double compare_prior(const struct compare_known *known,
                     const struct compare_machine_noise *machine);
/* Moderated: variance and degrees of freedom with which a point is judged. */
void compare_moderate(const struct compare_known *known,
                      const struct compare_machine_noise *machine,
                      const struct compare_rules *rules, double *variance, double *df,
                      unsigned *sources);

/* One-sided p of HEAD's runs among those of BASE's program, in the direction of the effect; *least
 * is the p of complete separation. */
double compare_rank(const struct compare_known *known, double *least);

#endif
