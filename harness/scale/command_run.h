/* SPDX-License-Identifier: Apache-2.0
 *
 * A run in the database that one command writes at its end: all its results are known by then.
 */
#ifndef HARNESS_SCALE_COMMAND_RUN_H
#define HARNESS_SCALE_COMMAND_RUN_H

#include "base/arena.h"
#include "base/error.h"
#include "results/record.h"

/* Result number `index`, from 0; what it points to lives in the arena. */
typedef enum status command_result(const void *context, int index, struct arena *arena,
                                   struct record *out, struct error *err);

/* command: the line that was typed. */
enum status command_run_store(const char *db, const char *command, int count,
                              command_result *result, const void *context, struct error *err);

/* The time of a result from its samples in seconds, sorted, and the samples themselves. */
struct metric_record command_run_time(const double *sorted, int count, double median_s);
/* The first `warm_up` of them are kept as such. FAILED: no memory. */
enum status command_run_samples(const double *times, int count, int warm_up, struct arena *arena,
                                struct record *record, struct error *err);

#endif
