/* SPDX-License-Identifier: Apache-2.0
 *
 * Two lists of runs, compared: what differs around them, then a verdict per point, then what may
 * have caused it. Reads the stores; results/compare.h decides.
 */
#ifndef HARNESS_COMPARE_COMPARISON_H
#define HARNESS_COMPARE_COMPARISON_H

#include <stdio.h>

#include "harness/compare/run_words.h"
#include "results/compare.h"

/* A fact in which BASE and HEAD differ; "" where a side has none. */
struct difference {
    const char *what, *base, *head;
};

/* What one side did in a point, by its first run that has it; NAN where it is not known. */
struct side_work {
    double flops, compulsory, streamed, dram;
    double switches, steal; /* context switches per second of samples; share of CPU time */
    double verify_error;    /* NAN: not verified */
    double verify_bound;
    bool unverified; /* in turns, where that says nothing */
};

/* A number per second, of which more is better. That of the scenario offline is made of the timed
 * samples, so their verdict is its verdict. A server's comes from one search per run: it is shown,
 * never judged. */
struct compared_rate {
    const char *name; /* NULL: this point has none */
    bool judged;
    double *runs[2]; /* of each run that counts */
    int count[2];
    double base, head; /* medians of those */
    double ratio, ci_low, ci_high;
};

struct compared_point {
    const char *key, *label, *canonical;
    int64_t base_result, head_result; /* of the first run that has it; 0: none */
    struct store *store[2];           /* where those are; borrowed */
    struct side_work work[2];
    const char *work_changed; /* "flops 4.1e9 -> 4.3e9"; "" when both sides did the same */
    struct compared_rate rate;
    int left_out[2]; /* invalid runs of a side that has at least as many valid ones */
    const char *left_out_why[2];
    const char *cause; /* what else changed; "" when nothing, or when there is nothing to explain */
};

/* What surrounded the visits of a side, of each visit that has it. */
enum around {
    AROUND_STEAL,
    AROUND_WAIT,
    AROUND_CLOCK,
    AROUND_LEVELS, /* the first of LEVEL_COUNT, as slowness */
    AROUND_COUNT = AROUND_LEVELS + LEVEL_COUNT,
};

struct side_around {
    double *values[AROUND_COUNT];
    size_t count[AROUND_COUNT], capacity[AROUND_COUNT];
};

struct comparison_set {
    struct arena arena;
    struct run_list base, head;
    bool same_program;
    bool in_turns; /* the runs of BASE and of HEAD were measured in turns */
    struct side_around visits[2];
    const struct difference *around; /* figures of both sides, also where they agree */
    size_t around_count;
    const char *attribution; /* one sentence */
    struct difference *differences;
    size_t difference_count, difference_capacity;
    struct compared_point *points;
    struct compare_point *inputs;
    struct comparison *verdicts;
    size_t count, capacity;
    double **samples; /* all that were read; owned */
    size_t sample_count;
    struct grid ceilings[2]; /* of the first run of BASE and of HEAD */
    int totals[VERDICT_COUNT];
};

enum status comparison_open(struct comparison_set *set, const char *base, const char *head,
                            const char *db, const struct compare_rules *rules, struct error *err);
void comparison_close(struct comparison_set *set);
/* By the worst verdict, never by how many there are. */
int comparison_exit_code(const struct comparison_set *set);

/* harness/compare/comparison_visits.c: whether the runs were measured in turns; the visits of a
 * result into a side; the earlier runs on the same machine into all points. */
void comparison_find_turns(struct comparison_set *set);
enum status comparison_add_visits(struct comparison_set *set, struct compare_side *side,
                                  bool is_head, int run, int64_t result, struct error *err);
enum status comparison_load_history(struct comparison_set *set, struct error *err);

/* harness/compare/comparison_around.c: notes what surrounded the visits of a result, whether it
 * counts or not (what is invalid was disturbed); then, once, the figures of both sides. */
enum status comparison_note_visits(struct comparison_set *set, bool is_head, struct store *store,
                                   int64_t result, struct error *err);
enum status comparison_find_around(struct comparison_set *set, struct error *err);

/* harness/compare/comparison_work.c: reads the work of a row of the view compare_points, and its
 * rate when the row counts; then says in which points the work changed, before any verdict, and
 * what the rates came to. */
void comparison_read_work(struct side_work *work, const struct grid *g, int64_t row);
enum status comparison_read_rate(struct comparison_set *set, struct compared_rate *rate,
                                 bool is_head, const struct grid *g, int64_t row,
                                 struct error *err);
enum status comparison_find_work(struct comparison_set *set, struct error *err);
void comparison_settle_rates(struct comparison_set *set);

/* harness/compare/comparison_facts.c: what differs around the runs, and how much slower the machine
 * itself was in HEAD for points on this device, with so many threads of the CPU (0: not known). */
enum status comparison_find_differences(struct comparison_set *set, struct error *err);
enum status comparison_note(struct comparison_set *set, const char *what, const char *base,
                            const char *head, struct error *err);
double comparison_machine(const struct comparison_set *set, const char *device, int threads);
/* Why a point may have changed: work, kernels, the steps that grew most. */
enum status comparison_find_cause(struct comparison_set *set, size_t point, struct error *err);

/* harness/compare/comparison_print.c */
struct comparison_writer {
    const char *name;
    void (*write)(const struct comparison_set *set, FILE *stream);
};
const struct comparison_writer *comparison_writer_find(const char *name);

#endif
