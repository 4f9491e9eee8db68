/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the store. A view is a file results/views/NAME.sql: comment lines on top say what it
 * shows, the rest is one SELECT with named parameters (:run, :result, :point ...). Its result is a
 * grid whose columns carry a name and a unit ("time_s [s]": the unit stands in the column's name).
 * `ridge export`, the report and the plots read grids and know no SQL.
 */
#ifndef RESULTS_QUERY_H
#define RESULTS_QUERY_H

#include "base/arena.h"
#include "base/error.h"
#include "results/store.h"

enum cell_kind { CELL_NULL, CELL_INT, CELL_REAL, CELL_TEXT };

struct cell {
    enum cell_kind kind;
    int64_t integer;
    double real;      /* also set for integers; NAN for NULL */
    const char *text; /* always printable; "" for NULL */
};

struct grid_column {
    const char *name, *unit;
};

struct grid {
    struct arena arena;
    struct grid_column *columns;
    int column_count;
    struct cell *cells; /* row after row */
    int64_t row_count;
};

/* A named parameter; text NULL: the number. */
struct query_value {
    const char *name; /* without ':' */
    const char *text;
    double number;
};

/* Runs view `name`. Parameters that the view has and the caller does not give are NULL. */
enum status query_view(struct store *store, const char *name, const struct query_value *values,
                       int value_count, struct grid *grid, struct error *err);
/* Any SELECT, for commands that compose one. */
enum status query_sql(struct store *store, const char *sql, const struct query_value *values,
                      int value_count, struct grid *grid, struct error *err);
void grid_release(struct grid *grid);

/* Column by name, -1 when absent. Cells are addressed by row and column. */
int grid_column_find(const struct grid *grid, const char *name);
const struct cell *grid_at(const struct grid *grid, int64_t row, int column);
/* Shorthand for a known column; a missing one is a NULL cell. */
double grid_number(const struct grid *grid, int64_t row, const char *column);
const char *grid_text(const struct grid *grid, int64_t row, const char *column);

/* Raw times of the time phase of a result in ns, in order; free() when done. */
enum status query_samples(struct store *store, int64_t result, double **times_ns, int64_t *count,
                          struct error *err);
/* The same; of scenario server with the time that each query was in the queue. */
enum status query_latencies(struct store *store, int64_t result, double **times_ns, int64_t *count,
                            struct error *err);

/* Resolves what a person types for a run: "latest", "latest~2", a uuid or its beginning, a tag, a
 * baseline's name, a git commit or its beginning. The message lists what there is. */
enum status query_find_run(struct store *store, const char *word, int64_t *run, struct error *err);

#endif
