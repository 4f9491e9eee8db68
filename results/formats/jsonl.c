/* SPDX-License-Identifier: Apache-2.0
 *
 * One JSON object per line, one line per result and metric: what stream tools and data frames take
 * without a further step. */
#include "base/text/json.h"
#include "results/format.h"

static enum status write_jsonl(const struct grid *grid, FILE *stream, struct error *err)
{
    for (int64_t row = 0; row < grid->row_count; row++) {
        struct json json;
        json_begin(&json, stream);
        json.compact = true;
        json_open(&json, NULL, '{');
        for (int k = 0; k < grid->column_count; k++) {
            const struct cell *cell = grid_at(grid, row, k);
            const char *key = grid->columns[k].name;
            if (cell->kind == CELL_INT)
                json_int(&json, key, cell->integer);
            else if (cell->kind == CELL_REAL)
                json_number(&json, key, cell->real);
            else
                json_text(&json, key, cell->kind == CELL_NULL ? NULL : cell->text);
        }
        json_close(&json);
    }
    return format_flush(stream, err);
}

REGISTER(format, jsonl) = {
    .name = "jsonl",
    .extension = "jsonl",
    .summary = "one JSON object per line, result and metric",
    .write = write_jsonl,
};
