/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/page.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "plots/plot.h"
#include "plots/svg.h"
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

void page_cell(struct page *page, const char *label, const char *text)
{
    page_raw(page, "<td data-label=\"%s\">", label);
    page_text(page, text);
    page_raw(page, "</td>");
}

void page_number(struct page *page, const char *label, double sort_by, const char *text)
{
    page_raw(page, "<td class=\"num\" data-label=\"%s\" data-sort=\"%.9g\">", label,
             isfinite(sort_by) ? sort_by : -1);
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
    for (int64_t row = 0; row < grid->row_count; row++)
        if ((int64_t)grid_number(grid, row, "result") == result)
            return row;
    return -1;
}

void page_result_name(struct page *page, const struct grid *grid, int64_t row)
{
    page_text(page, grid_text(grid, row, "spec"));
}

static enum status put_picture(struct page *page, const struct plot *plot, const char *stem,
                               const char *file, struct error *err)
{
    struct svg_words words = {stem, plot->title, plot->about};
    page_raw(page, "<figure class=\"plot\"><div class=\"scroll\">");
    TRY(svg_inline(file, &words, page->out, err));
    page_raw(page, "</div><figcaption>");
    page_text(page, plot->about);
    page_raw(page, " <span class=\"files\"><a href=\"plots/%s.svg\">svg</a> "
                   "<a href=\"plots/%s.dat\">data</a> <a href=\"plots/%s.gp\">gnuplot</a></span>",
             stem, stem, stem);
    page_raw(page, "</figcaption></figure>\n");
    return STATUS_OK;
}

enum status page_figure(struct page *page, const char *name, int64_t result, struct error *err)
{
    struct plot plot;
    struct plot_outcome outcome;
    char stem[64];
    if (result)
        snprintf(stem, sizeof(stem), "%s_%lld", name, (long long)result);
    else
        snprintf(stem, sizeof(stem), "%s", name);
    struct plot_request request = {.name = name,
                                   .run = page->run,
                                   .result = result,
                                   .folder = page->folder,
                                   .stem = stem,
                                   .kind = "svg"};
    TRY(plot_find(name, &plot, err));
    TRY(plot_draw(page->store, &request, &outcome, err));
    if (outcome.drawn) {
        page->outcome->drawn++;
        return put_picture(page, &plot, stem, outcome.file, err);
    }
    struct report_outcome *o = page->outcome;
    if (o->not_drawn++ == 0)
        snprintf(o->plot_reason, sizeof(o->plot_reason), "%s", outcome.reason);
    page_raw(page, "<p class=\"missing\">No picture here (%s): ", name);
    page_text(page, outcome.reason);
    page_raw(page, "</p>\n");
    return STATUS_OK;
}
