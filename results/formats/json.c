/* SPDX-License-Identifier: Apache-2.0
 *
 * One JSON document: an array with one object per result, its metrics inside. */
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "results/format.h"

static void write_cell(struct json *json, const char *key, const struct cell *cell)
{
    if (cell->kind == CELL_INT)
        json_int(json, key, cell->integer);
    else if (cell->kind == CELL_REAL)
        json_number(json, key, cell->real);
    else
        json_text(json, key, cell->kind == CELL_NULL ? NULL : cell->text);
}

/* What the view made as JSON already. */
static void write_made(struct json *json, const char *key, const struct cell *cell)
{
    if (cell->kind == CELL_NULL)
        json_null(json, key);
    else
        json_verbatim(json, key, cell->text);
}

static enum status write_samples(struct json *json, const char *text, struct error *err)
{
    int count;
    int64_t *values = format_samples(text, &count);
    if (!values)
        return FAIL_NO_MEMORY(err);
    json_ints(json, "samples_ns", values, count);
    free(values);
    return STATUS_OK;
}

/* From this column on, and to the other, a row is about a metric; the rest is the result. */
static bool is_of_metric(const struct grid *grid, int column)
{
    return column >= grid_column_find(grid, "step") && column <= grid_column_find(grid, "ci_high");
}

static enum status write_metric(struct json *json, const struct grid *grid, int64_t row,
                                struct error *err)
{
    enum status status = STATUS_OK;
    int samples = grid_column_find(grid, "samples_ns");
    json_open(json, NULL, '{');
    for (int k = 0; k < grid->column_count; k++)
        if (is_of_metric(grid, k))
            write_cell(json, grid->columns[k].name, grid_at(grid, row, k));
    if (grid_at(grid, row, samples)->kind != CELL_NULL) {
        status = write_samples(json, grid_at(grid, row, samples)->text, err);
        write_made(json, "samples_visit",
                   grid_at(grid, row, grid_column_find(grid, "samples_visit")));
    }
    json_close(json);
    return status;
}

static enum status write_json(const struct grid *grid, FILE *stream, struct error *err)
{
    struct json json;
    /* The column after that of the samples has the visit of each. */
    int samples = grid_column_find(grid, "samples_ns"), name = grid_column_find(grid, "metric");
    json_begin(&json, stream);
    json_open(&json, NULL, '[');
    for (int64_t row = 0; row < grid->row_count;) {
        json_open(&json, NULL, '{');
        for (int k = 0; k < grid->column_count; k++)
            if (k == grid_column_find(grid, "visits"))
                write_made(&json, "visits", grid_at(grid, row, k));
            else if (!is_of_metric(grid, k) && k != samples && k != samples + 1)
                write_cell(&json, grid->columns[k].name, grid_at(grid, row, k));
        json_open(&json, "metrics", '[');
        do {
            if (grid_at(grid, row, name)->kind != CELL_NULL)
                TRY(write_metric(&json, grid, row, err));
        } while (++row < grid->row_count && !format_starts_result(grid, row));
        json_close(&json);
        json_close(&json);
    }
    json_close(&json);
    return format_flush(stream, err);
}

REGISTER(format, json) = {
    .name = "json",
    .extension = "json",
    .summary = "one object per result with its metrics and raw samples",
    .samples = true,
    .write = write_json,
};
