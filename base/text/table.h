/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of text for people: columns as wide as their contents. Cells are copied.
 *
 *     struct table t = {0};
 *     table_column(&t, "name", TABLE_LEFT);
 *     table_column(&t, "time", TABLE_RIGHT);
 *     table_cell(&t, "%s", name);      row after row, column after column
 *     table_cell(&t, "%.3f", ms);
 *     table_print(&t, stdout);
 *     table_release(&t);
 *
 * When memory runs out cells are dropped and table_print says so in the last line.
 */
#ifndef BASE_TEXT_TABLE_H
#define BASE_TEXT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };

enum { TABLE_COLUMNS_MAX = 24 };

struct table {
    struct arena arena;
    const char *titles[TABLE_COLUMNS_MAX];
    enum table_align align[TABLE_COLUMNS_MAX];
    int width[TABLE_COLUMNS_MAX];
    int column_count;
    const char **cells; /* row after row */
    size_t cell_count, cell_cap;
    bool incomplete;
};

void table_column(struct table *table, const char *title, enum table_align align);
__attribute__((format(printf, 2, 3))) void table_cell(struct table *table, const char *format, ...);
void table_print(const struct table *table, FILE *stream);
/* The parts of it, for lines between the rows. */
void table_print_titles(const struct table *table, FILE *stream);
void table_print_row(const struct table *table, size_t row, FILE *stream);
void table_release(struct table *table);

#endif
