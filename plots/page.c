/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plots/text.h"

void page_raw(struct page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(page->out, format, args);
    va_end(args);
}

void page_text(struct page *page, const char *text)
{
    text_html(page->out, text);
}

void page_element(struct page *page, const char *tag, const char *text)
{
    page_raw(page, "<%s>", tag);
    page_text(page, text);
    page_raw(page, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void page_term(struct page *page, const char *name, const char *value)
{
    page_raw(page, "<div><dt>%s</dt><dd>", name);
    page_text(page, *value ? value : "\xe2\x80\x93");
    page_raw(page, "</dd></div>\n");
}

void page_cell(struct page *page, const char *label, const char *text)
{
    page_raw(page, "<td data-label=\"%s\">", label);
    page_text(page, text);
    page_raw(page, "</td>");
}

struct short_text page_sort_key(double value)
{
    struct short_text text = {""};
    if (isfinite(value))
        snprintf(text.s, sizeof(text.s), "%.9g", value);
    return text;
}

void page_number(struct page *page, const char *label, double sort_by, const char *text)
{
    page_raw(page, "<td class=\"num\" data-label=\"%s\" data-sort=\"%s\">", label,
             page_sort_key(sort_by).s);
    page_text(page, text);
    page_raw(page, "</td>");
}

/* A title that begins with '#' heads a column of numbers. */
void page_begin_table(struct page *page, const char *classes, const char *const *titles, int count)
{
    page_raw(page, "<div class=\"scroll\"><table class=\"%s\"><thead><tr>", classes);
    for (int k = 0; k < count; k++) {
        bool number = titles[k][0] == '#';
        page_element(page, number ? "th scope=\"col\" class=\"num\"" : "th scope=\"col\"",
                     titles[k] + number);
    }
    page_raw(page, "</tr></thead><tbody>\n");
}

void page_end_table(struct page *page)
{
    page_raw(page, "</tbody></table></div>\n");
}

int64_t page_find(const struct grid *grid, int64_t result)
{
    int column = grid_column_find(grid, "result");
    for (int64_t row = 0; row < grid->row_count; row++)
        if ((int64_t)grid_at(grid, row, column)->real == result)
            return row;
    return -1;
}

/* ---- steps ---- */

struct row_of_result {
    int64_t result, row;
};

static int by_result(const void *a, const void *b)
{
    const struct row_of_result *x = a, *y = b;
    if (x->result != y->result)
        return x->result < y->result ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int find_result(const void *key, const void *item)
{
    const int64_t *result = key;
    const struct page_step *step = item;
    return *result < step->result ? -1 : *result > step->result;
}

enum status page_index_steps(struct page *page, struct error *err)
{
    const struct grid *g = &page->offenders;
    size_t rows = (size_t)g->row_count + 1;
    struct row_of_result *sorted = arena_array(&page->arena, rows, sizeof(*sorted));
    page->steps = arena_array(&page->arena, rows, sizeof(*page->steps));
    page->step_rows = arena_array(&page->arena, rows, sizeof(*page->step_rows));
    if (!sorted || !page->steps || !page->step_rows)
        return FAIL_NO_MEMORY(err);
    for (int64_t row = 0; row < g->row_count; row++)
        sorted[row] = (struct row_of_result){(int64_t)grid_number(g, row, "result"), row};
    qsort(sorted, (size_t)g->row_count, sizeof(*sorted), by_result);
    for (int64_t k = 0; k < g->row_count; k++) {
        page->step_rows[k] = sorted[k].row;
        if (k == 0 || sorted[k].result != sorted[k - 1].result)
            page->steps[page->step_count++] = (struct page_step){sorted[k].result, k, 0};
        page->steps[page->step_count - 1].count++;
    }
    return STATUS_OK;
}

const int64_t *page_steps(const struct page *page, int64_t result, int *count)
{
    const struct page_step *found =
        bsearch(&result, page->steps, (size_t)page->step_count, sizeof(*page->steps), find_result);
    *count = found ? (int)found->count : 0;
    return found ? page->step_rows + found->first : NULL;
}

bool page_shows_step(const struct page *page, const int64_t *rows, int k)
{
    enum { STEPS_SHOWN = 10 };
    return k < STEPS_SHOWN ||
           strcmp(grid_text(&page->offenders, rows[k], "bound"), "counting error") == 0;
}

bool page_is_valid(const struct grid *results, int64_t row)
{
    return strcmp(grid_text(results, row, "status"), "ok") == 0 &&
           strcmp(grid_text(results, row, "verdict"), "valid") == 0;
}

static double loss_of(const struct grid *bounds, int64_t row, int column)
{
    double loss = grid_at(bounds, row, column)->real;
    return isfinite(loss) ? loss : 0;
}

bool page_is_pictured(const struct page *page, int64_t result)
{
    const struct grid *g = &page->bounds;
    int64_t this_row = page_find(g, result);
    int before = 0, column = grid_column_find(g, "recoverable");
    if (g->row_count <= PAGE_PICTURED_MAX || this_row < 0)
        return true;
    double loss = loss_of(g, this_row, column);
    for (int64_t row = 0; row < g->row_count && before < PAGE_PICTURED_MAX; row++) {
        double other = loss_of(g, row, column);
        before += other > loss || (other == loss && row < this_row);
    }
    return before < PAGE_PICTURED_MAX;
}

int64_t page_fact(const struct page *page, const char *name)
{
    const struct grid *g = &page->environment;
    for (int64_t row = 0; row < g->row_count; row++) {
        const char *category = grid_text(g, row, "category");
        size_t length = strlen(category);
        if (strncmp(name, category, length) == 0 && name[length] == ' ' &&
            strcmp(name + length + 1, grid_text(g, row, "key")) == 0)
            return row;
    }
    return -1;
}

const char *page_fact_text(const struct page *page, const char *name)
{
    int64_t row = page_fact(page, name);
    return row >= 0 && strcmp(grid_text(&page->environment, row, "status"), "ok") == 0
               ? grid_text(&page->environment, row, "value")
               : "";
}

void page_result_name(struct page *page, const struct grid *grid, int64_t row)
{
    page_text(page, grid_text(grid, row, "spec"));
}

void page_unusual(struct page *page, const struct grid *grid, int64_t row)
{
    static const char *const usual[][2] = {
        {"mode", "inference"}, {"scenario", "single_stream"}, {"cache", "warm"}};
    for (size_t k = 0; k < sizeof(usual) / sizeof(*usual); k++) {
        const char *value = grid_text(grid, row, usual[k][0]);
        if (strcmp(value, usual[k][1]) == 0)
            continue;
        page_raw(page, " \xc2\xb7 ");
        page_text(page, value);
    }
    const char *apart = grid_text(grid, row, "apart");
    if (*apart)
        page_raw(page, " \xc2\xb7");
    page_text(page, apart);
}
