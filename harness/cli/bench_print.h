/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of operations between ranks, printed: each with its rates and its share of what copying
 * alone would allow, then what a message and a byte cost in each algorithm. */
#ifndef HARNESS_CLI_BENCH_PRINT_H
#define HARNESS_CLI_BENCH_PRINT_H

#include "collective/timing.h"

/* The cases of one backend and their results. */
struct bench_part {
    const struct backend *backend;
    struct timing_case *cases;
    struct timing *results;
    int count, capacity;
};

void bench_print_table(const struct bench_part *part, int ranks);
/* All parts have cases of one type and one reduction. */
void bench_print_json(const struct timing_options *options, const struct bench_part *parts,
                      int count);

#endif
