/* SPDX-License-Identifier: Apache-2.0
 *
 * Views and grids. "{lib/whole}" in a view stands for the text of results/views/lib/whole.sql as a
 * table: SQL has views of its own, but those take no parameters and would live in every database
 * file, where an older program could not change them. */
#include "results/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/embedded.h"
#include "results/sqlite.h"

enum { PATH_BYTES = 256, DEPTH_MAX = 8 };

/* ---- the text of a view ---- */

static const struct embedded *view_find(const char *name, int length)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "results/views/%.*s.sql", length, name);
    return embedded_find(path);
}

/* -1 when a part is missing or parts include each other. */
static int expand(sqlite3_str *out, const char *text, int depth)
{
    const char *open;
    while ((open = strchr(text, '{'))) {
        int length = (int)strcspn(open + 1, "}");
        const struct embedded *part = view_find(open + 1, length);
        if (!part || depth >= DEPTH_MAX)
            return -1;
        sqlite3_str_append(out, text, (int)(open - text));
        sqlite3_str_appendchar(out, 1, '(');
        if (expand(out, part->text, depth + 1))
            return -1;
        sqlite3_str_appendchar(out, 1, ')');
        text = open + length + 2;
    }
    sqlite3_str_appendall(out, text);
    return 0;
}

static enum status fail_unknown(const char *name, struct error *err)
{
    char names[400] = "";
    size_t used = 0;
    const struct embedded *file = NULL;
    while ((file = embedded_next("results/views/", file)) && used < sizeof(names)) {
        const char *base = file->path + strlen("results/views/");
        if (!strchr(base, '/'))
            used += (size_t)snprintf(names + used, sizeof(names) - used, " %.*s",
                                     (int)strcspn(base, "."), base);
    }
    return FAIL(err, STATUS_FAILED, "there is no view \"%s\"; there are:%s", name, names);
}

enum status query_view(struct store *store, const char *name, const struct query_value *values,
                       int value_count, struct grid *grid, struct error *err)
{
    const struct embedded *view = view_find(name, (int)strlen(name));
    *grid = (struct grid){0};
    if (!view)
        return fail_unknown(name, err);
    sqlite3_str *text = sqlite3_str_new(NULL);
    int bad = expand(text, view->text, 0);
    char *sql = sqlite3_str_finish(text);
    enum status status = STATUS_OK;
    if (bad)
        status = FAIL(err, STATUS_FAILED, "view %s includes a part that is not there", name);
    else if (!sql)
        status = FAIL_NO_MEMORY(err);
    else if (query_sql(store, sql, values, value_count, grid, err))
        status = error_context(err, "view %s", name);
    sqlite3_free(sql);
    return status;
}

/* ---- from statement to grid ---- */

static int bind_values(sqlite3_stmt *statement, const struct query_value *values, int count)
{
    int code = SQLITE_OK;
    for (int k = 1; k <= sqlite3_bind_parameter_count(statement) && code == SQLITE_OK; k++) {
        const char *name = sqlite3_bind_parameter_name(statement, k);
        if (!name)
            continue;
        for (int i = 0; i < count; i++) {
            if (strcmp(name + 1, values[i].name) != 0)
                continue;
            double number = values[i].number;
            code = values[i].text
                       ? sqlite3_bind_text(statement, k, values[i].text, -1, SQLITE_STATIC)
                   : isnan(number) ? sqlite3_bind_null(statement, k)
                   : number == floor(number) && fabs(number) < 9e15
                       ? sqlite3_bind_int64(statement, k, (int64_t)number)
                       : sqlite3_bind_double(statement, k, number);
        }
    }
    return code;
}

/* "time [s]" becomes name "time" and unit "s". */
static bool read_column(struct grid *grid, int index, const char *title)
{
    struct grid_column *column = &grid->columns[index];
    const char *open = title ? strstr(title, " [") : NULL;
    int length = (int)(open ? (size_t)(open - title) : strlen(title ? title : ""));
    column->name = arena_printf(&grid->arena, "%.*s", length, title ? title : "");
    column->unit =
        open ? arena_printf(&grid->arena, "%.*s", (int)strcspn(open + 2, "]"), open + 2) : "";
    return column->name && column->unit;
}

/* Reads back as the same number; 15 digits where they are enough. */
static char *number_text(struct arena *arena, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    return arena_strdup(arena, text);
}

/* above: the cell of the same column in the row before, whose text is often the same. */
static bool read_cell(struct grid *grid, struct cell *cell, const struct cell *above,
                      sqlite3_stmt *statement, int column)
{
    *cell = (struct cell){.kind = CELL_NULL, .real = NAN, .text = ""};
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        return true;
    case SQLITE_INTEGER:
        cell->kind = CELL_INT;
        cell->integer = sqlite3_column_int64(statement, column);
        cell->real = (double)cell->integer;
        cell->text = above && above->kind == CELL_INT && above->integer == cell->integer
                         ? above->text
                         : arena_printf(&grid->arena, "%lld", (long long)cell->integer);
        return cell->text != NULL;
    case SQLITE_FLOAT:
        cell->kind = CELL_REAL;
        cell->real = sqlite3_column_double(statement, column);
        cell->text = above && above->kind == CELL_REAL && above->real == cell->real
                         ? above->text
                         : number_text(&grid->arena, cell->real);
        return cell->text != NULL;
    default: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        cell->kind = CELL_TEXT;
        if (!text)
            return false;
        char *copy = NULL;
        bool again = above && above->kind == CELL_TEXT && strcmp(above->text, text) == 0;
        if (!again && (copy = arena_strdup(&grid->arena, text)))
            clean_lines(copy); /* it may be another program's, or a name out of somebody's model */
        cell->text = again ? above->text : copy;
        return cell->text != NULL;
    }
    }
}

static bool read_row(struct grid *grid, size_t *capacity, sqlite3_stmt *statement)
{
    size_t at = (size_t)grid->row_count * (size_t)grid->column_count;
    grid->cells = arena_grow(&grid->arena, grid->cells, capacity, at + (size_t)grid->column_count,
                             sizeof(*grid->cells));
    if (!grid->cells)
        return false;
    for (int k = 0; k < grid->column_count; k++) {
        const struct cell *above =
            at ? &grid->cells[at + (size_t)k - (size_t)grid->column_count] : NULL;
        if (!read_cell(grid, &grid->cells[at + (size_t)k], above, statement, k))
            return false;
    }
    grid->row_count++;
    return true;
}

static enum status read_grid(struct store *store, sqlite3_stmt *statement, struct grid *grid,
                             struct error *err)
{
    size_t capacity = 0;
    int code;
    grid->column_count = sqlite3_column_count(statement);
    grid->columns =
        arena_array(&grid->arena, (size_t)grid->column_count + 1, sizeof(*grid->columns));
    if (!grid->columns)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < grid->column_count; k++)
        if (!read_column(grid, k, sqlite3_column_name(statement, k)))
            return FAIL_NO_MEMORY(err);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!read_row(grid, &capacity, statement))
            return FAIL_NO_MEMORY(err);
    if (code != SQLITE_DONE)
        return sql_fail(store, "reading results", err);
    return STATUS_OK;
}

enum status query_sql(struct store *store, const char *sql, const struct query_value *values,
                      int value_count, struct grid *grid, struct error *err)
{
    sqlite3_stmt *statement;
    enum status status = STATUS_OK;
    *grid = (struct grid){0};
    TRY(sql_prepare(store, sql, &statement, err));
    if (!statement || !sqlite3_stmt_readonly(statement))
        status = FAIL(err, STATUS_FAILED, "a query may only read");
    else if (bind_values(statement, values, value_count) != SQLITE_OK)
        status = sql_fail(store, "reading results", err);
    else
        status = read_grid(store, statement, grid, err);
    sqlite3_finalize(statement);
    if (status != STATUS_OK)
        grid_release(grid);
    return status;
}

void grid_release(struct grid *grid)
{
    arena_release(&grid->arena);
    *grid = (struct grid){0};
}

/* ---- looking into a grid ---- */

int grid_column_find(const struct grid *grid, const char *name)
{
    for (int k = 0; k < grid->column_count; k++)
        if (strcmp(grid->columns[k].name, name) == 0)
            return k;
    return -1;
}

const struct cell *grid_at(const struct grid *grid, int64_t row, int column)
{
    static const struct cell none = {.kind = CELL_NULL, .real = NAN, .text = ""};
    if (row < 0 || row >= grid->row_count || column < 0 || column >= grid->column_count)
        return &none;
    return &grid->cells[row * grid->column_count + column];
}

double grid_number(const struct grid *grid, int64_t row, const char *column)
{
    const struct cell *cell = grid_at(grid, row, grid_column_find(grid, column));
    return cell->kind == CELL_TEXT ? NAN : cell->real;
}

const char *grid_text(const struct grid *grid, int64_t row, const char *column)
{
    return grid_at(grid, row, grid_column_find(grid, column))->text;
}

/* ---- samples ---- */

static enum status read_samples(struct store *store, sqlite3_stmt *statement, double **times,
                                int64_t *count, struct error *err)
{
    size_t capacity = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if ((size_t)*count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            double *grown = realloc(*times, capacity * sizeof(**times));
            if (!grown)
                return FAIL_NO_MEMORY(err);
            *times = grown;
        }
        (*times)[(*count)++] = (double)sqlite3_column_int64(statement, 0);
    }
    if (code != SQLITE_DONE)
        return sql_fail(store, "reading samples", err);
    return STATUS_OK;
}

static enum status query_times(struct store *store, const char *sql, int64_t result,
                               double **times_ns, int64_t *count, struct error *err)
{
    sqlite3_stmt *statement;
    *times_ns = NULL;
    *count = 0;
    TRY(sql_prepare(store, sql, &statement, err));
    sqlite3_bind_int64(statement, 1, result);
    enum status status = read_samples(store, statement, times_ns, count, err);
    sqlite3_finalize(statement);
    if (status != STATUS_OK) {
        free(*times_ns);
        *times_ns = NULL;
        *count = 0;
    }
    return status;
}

enum status query_samples(struct store *store, int64_t result, double **times_ns, int64_t *count,
                          struct error *err)
{
    return query_times(
        store, "SELECT time_ns FROM sample WHERE result = ? AND phase = 'time' ORDER BY idx",
        result, times_ns, count, err);
}

enum status query_latencies(struct store *store, int64_t result, double **times_ns, int64_t *count,
                            struct error *err)
{
    return query_times(store,
                       "SELECT time_ns + ifnull(queue_ns, 0) FROM sample "
                       "WHERE result = ? AND phase = 'time' ORDER BY idx",
                       result, times_ns, count, err);
}
