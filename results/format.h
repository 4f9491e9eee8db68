/* SPDX-License-Identifier: Apache-2.0
 *
 * A way to write results as text: results/formats/NAME.c, chosen by `ridge export --format NAME`.
 * Called once with everything; the grid is that of view `export` (one row per result and metric).
 * The smallest example is results/formats/csv.c.
 */
#ifndef RESULTS_FORMAT_H
#define RESULTS_FORMAT_H

#include <stdio.h>

#include "base/registry.h"
#include "results/query.h"

struct format {
    const char *name;
    const char *extension; /* "csv" */
    const char *summary;
    bool samples; /* wants column samples_ns filled: raw times as a JSON array */
    enum status (*write)(const struct grid *grid, FILE *stream, struct error *err);
};

int format_count(void);
const struct format *format_at(int index);
const struct format *format_find(const char *name);

/* ---- for formats ---- */

/* The numbers of a cell of samples_ns; *count is 0 for "". NULL without memory; free() when done.
 */
int64_t *format_samples(const char *text, int *count);
/* What only some points have stands last in the canonical text: " tuning=quick", " bound=0.1
 * quantile=0.99"; "" for most. */
const char *format_rare_words(const struct grid *grid, int64_t row);
/* True when this row belongs to another result than the row before. */
bool format_starts_result(const struct grid *grid, int64_t row);
/* FAILED with the stream's error when something could not be written. */
enum status format_flush(FILE *stream, struct error *err);

#endif
