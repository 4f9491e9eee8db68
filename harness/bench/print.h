/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of operations between ranks, printed: each with its rates and its share of what copying
 * alone would allow, then what a message and a byte cost in each algorithm. */
#ifndef HARNESS_BENCH_PRINT_H
#define HARNESS_BENCH_PRINT_H

#include "harness/bench/bench.h"

void bench_print_table(const struct bench_part *part, int ranks);
/* All parts have cases of one type and one reduction. */
void bench_print_json(const struct bench *bench, const struct bench_part *parts, int count);

#endif
