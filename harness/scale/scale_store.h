/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaling points in the database: a run whose results are the numbers of ranks. The id of a point
 * names ranks, scaling and backend, so that only equal ones are compared. */
#ifndef HARNESS_SCALE_SCALE_STORE_H
#define HARNESS_SCALE_SCALE_STORE_H

#include "base/arena.h"
#include "harness/scale/scale_print.h"
#include "results/record.h"

/* What the store takes of one of the points; borrows from `scaling`. */
enum status scaling_record(const struct scaling *scaling, int index, struct arena *arena,
                           struct record *record, struct error *err);
/* All of them as a run. command: the line that was typed. */
enum status scaling_store(const struct scaling *scaling, const char *db, const char *command,
                          struct error *err);

#endif
