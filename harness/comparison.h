/* SPDX-License-Identifier: Apache-2.0
 *
 * Two lists of runs, compared: what differs around them, then a verdict per point, then what may
 * have caused it. Reads the stores; results/compare.h decides.
 */
#ifndef HARNESS_COMPARISON_H
#define HARNESS_COMPARISON_H

#include <stdio.h>

#include "harness/run_words.h"
#include "results/compare.h"

/* A fact in which BASE and HEAD differ; "" where a side has none. */
struct difference {
    const char *what, *base, *head;
};

struct compared_point {
    const char *key, *label, *canonical;
    int64_t base_result, head_result; /* of the first run that has it; 0: none */
    double flops[2], streamed[2], dram[2];
    double switches[2], steal[2]; /* context switches per second of samples; share of CPU time */
    int left_out[2];              /* invalid runs of a side that has at least as many valid ones */
    const char *left_out_why[2];
    const char *cause; /* of a verdict that is a change; "" otherwise */
};

struct comparison_set {
    struct arena arena;
    struct run_list base, head;
    bool same_program;
    const char *attribution; /* one sentence */
    struct difference *differences;
    size_t difference_count, difference_capacity;
    struct compared_point *points;
    struct compare_point *inputs;
    struct comparison *verdicts;
    size_t count, capacity;
    double **samples; /* all that were read; owned */
    size_t sample_count, sample_capacity;
    struct grid ceilings[2]; /* of the first run of BASE and of HEAD */
    int totals[VERDICT_COUNT];
};

enum status comparison_open(struct comparison_set *set, const char *base, const char *head,
                            const char *db, const struct compare_rules *rules, struct error *err);
void comparison_close(struct comparison_set *set);
/* By the worst verdict, never by how many there are. */
int comparison_exit_code(const struct comparison_set *set);

/* harness/comparison_facts.c: what differs around the runs, and how much slower the machine itself
 * was in HEAD for points of so many threads (0: not known). */
enum status comparison_find_differences(struct comparison_set *set, struct error *err);
double comparison_machine(const struct comparison_set *set, int threads);
/* Why a point may have changed: work, kernels, the steps that grew most. */
enum status comparison_find_cause(struct comparison_set *set, size_t point, struct error *err);

/* harness/comparison_print.c */
struct comparison_writer {
    const char *name;
    void (*write)(const struct comparison_set *set, FILE *stream);
};
const struct comparison_writer *comparison_writer_find(const char *name);

#endif
