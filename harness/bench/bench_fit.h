/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from the times of one backend: copies to compare with, and models. */
#ifndef HARNESS_BENCH_BENCH_FIT_H
#define HARNESS_BENCH_BENCH_FIT_H

#include "collective/fit.h"
#include "collective/log_gp.h"
#include "harness/bench/bench.h"

/* Copying once what an operation is about. NAN: not timed. */
double bench_copy_seconds(const struct bench_part *part, int64_t bytes);
/* By rank 0, as the schedule says. */
int64_t bench_bytes_sent(const struct timing_case *c, const struct timing *timing);
/* The model of an algorithm, fitted to the operation's sizes, in place or out of place. False:
 * there are too few, or the library has no schedule that it could be made of. */
bool bench_fit(const struct bench_part *part, const struct algorithm *algorithm,
               enum comm_operation operation, bool in_place, struct alpha_beta *out);
/* Of the trips. False: there are none. */
bool bench_log_gp(const struct bench_part *part, struct log_gp *out);

#endif
