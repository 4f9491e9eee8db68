/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/table.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/clean.h"

/* Columns that text takes on a terminal: bytes that continue a UTF-8 sequence take none. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

void table_column(struct table *table, const char *title, enum table_align align)
{
    assert(table->column_count < TABLE_COLUMNS_MAX && table->cell_count == 0);
    int k = table->column_count++;
    table->titles[k] = title;
    table->align[k] = align;
    table->width[k] = width_of(title);
}

void table_cell(struct table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char **cells = arena_grow(&table->arena, table->cells, &table->cell_cap,
                                    table->cell_count + 1, sizeof(*cells));
    char clean[sizeof(text)];
    const char *copy =
        cells ? arena_strdup(&table->arena, clean_copy(clean, sizeof(clean), text)) : NULL;
    if (cells)
        table->cells = cells;
    if (!copy) {
        table->incomplete = true;
        return;
    }
    int column = (int)(table->cell_count % (size_t)table->column_count), width = width_of(copy);
    if (width > table->width[column])
        table->width[column] = width;
    table->cells[table->cell_count++] = copy;
}

static void print_cell(const struct table *table, int column, const char *text, FILE *stream)
{
    int fill = table->width[column] - width_of(text);
    const char *gap = column ? "  " : "";
    if (table->align[column] == TABLE_RIGHT)
        fprintf(stream, "%s%*s%s", gap, fill, "", text);
    else if (column == table->column_count - 1) /* no blanks at the end of a line */
        fprintf(stream, "%s%s", gap, text);
    else
        fprintf(stream, "%s%s%*s", gap, text, fill, "");
}

void table_print_titles(const struct table *table, FILE *stream)
{
    for (int k = 0; k < table->column_count; k++)
        print_cell(table, k, table->titles[k], stream);
    fputc('\n', stream);
}

void table_print_row(const struct table *table, size_t row, FILE *stream)
{
    size_t columns = (size_t)table->column_count, first = row * columns;
    for (size_t k = 0; k < columns && first + k < table->cell_count; k++)
        print_cell(table, (int)k, table->cells[first + k], stream);
    fputc('\n', stream);
}

void table_print(const struct table *table, FILE *stream)
{
    table_print_titles(table, stream);
    for (size_t row = 0; row * (size_t)table->column_count < table->cell_count; row++)
        table_print_row(table, row, stream);
    if (table->incomplete)
        fputs("(out of memory: some cells are missing)\n", stream);
}

void table_release(struct table *table)
{
    arena_release(&table->arena);
    *table = (struct table){.column_count = 0};
}
