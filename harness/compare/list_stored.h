/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogues of `ridge list` that are not part of the program: runs and baselines of a
 * database, and suites, which are read for their descriptions. */
#ifndef HARNESS_COMPARE_LIST_STORED_H
#define HARNESS_COMPARE_LIST_STORED_H

#include <stdbool.h>

#include "base/error.h"

/* To standard output. */
enum status list_runs(const char *db, bool as_json, struct error *err);
enum status list_baselines(const char *db, bool as_json, struct error *err);
enum status list_suites(bool as_json, struct error *err);

#endif
