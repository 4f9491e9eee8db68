/* SPDX-License-Identifier: Apache-2.0
 *
 * What the forms of a comparison share: the cells of a row as words, and the order of rows. */
#ifndef HARNESS_COMPARE_COMPARISON_PRINT_H
#define HARNESS_COMPARE_COMPARISON_PRINT_H

#include "harness/compare/comparison.h"

/* A row: a point's time, or its rate. "-" where a number is not known. */
struct comparison_cells {
    const char *verdict; /* "not judged" of a rate without samples */
    char point[256];     /* label; of a rate, or of a server's time, with what it is */
    char base[24], head[24], change[24], interval[48], detectable[24];
};

void comparison_cells_time(struct comparison_cells *cells, const struct comparison_set *set,
                           size_t point);
/* False: the point has no rate. */
bool comparison_cells_rate(struct comparison_cells *cells, const struct comparison_set *set,
                           size_t point);

/* The index-th point in the order in which people read them: what needs a look comes first. */
size_t comparison_ordered(const struct comparison_set *set, size_t index);
/* "1 regressed, 3 unchanged" */
void comparison_totals(const struct comparison_set *set, char *text, size_t size);

void comparison_write_text(const struct comparison_set *set, FILE *stream);
void comparison_write_markdown(const struct comparison_set *set, FILE *stream);
void comparison_write_junit(const struct comparison_set *set, FILE *stream);
void comparison_write_github(const struct comparison_set *set, FILE *stream);

#endif
