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
    enum status (*write)(const struct grid *grid, FILE *stream, struct error *err);
};

int format_count(void);
const struct format *format_at(int index);
const struct format *format_find(const char *name);

#endif
