/* SPDX-License-Identifier: Apache-2.0
 *
 * Comma-separated values after RFC 4180: lines end in CRLF, a cell with a comma, a quote or a line
 * end stands in quotes. NULL is nothing at all, an empty text is "". A text that begins with = + -
 * @ or a tab is put in quotes after an apostrophe: spreadsheets then take it for text, not for a
 * formula. Numbers stay numbers. */
#include <stdbool.h>
#include <string.h>

#include "results/format.h"

static void write_text(const char *text, FILE *stream)
{
    bool formula = *text && strchr("=+-@\t", *text);
    if (*text && !formula && !strpbrk(text, ",\"\r\n")) {
        fputs(text, stream);
        return;
    }
    fputs(formula ? "\"'" : "\"", stream);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static enum status write_csv(const struct grid *grid, FILE *stream, struct error *err)
{
    for (int k = 0; k < grid->column_count; k++) {
        char title[160];
        const struct grid_column *column = &grid->columns[k];
        snprintf(title, sizeof(title), *column->unit ? "%s [%s]" : "%s", column->name,
                 column->unit);
        fputs(k ? "," : "", stream);
        write_text(title, stream);
    }
    fputs("\r\n", stream);
    for (int64_t row = 0; row < grid->row_count; row++) {
        for (int k = 0; k < grid->column_count; k++) {
            const struct cell *cell = grid_at(grid, row, k);
            fputs(k ? "," : "", stream);
            if (cell->kind == CELL_TEXT)
                write_text(cell->text, stream);
            else if (cell->kind != CELL_NULL)
                fputs(cell->text, stream);
        }
        fputs("\r\n", stream);
    }
    return format_flush(stream, err);
}

REGISTER(format, csv) = {
    .name = "csv",
    .extension = "csv",
    .summary = "comma-separated values, one line per result and metric",
    .write = write_csv,
};
