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

bool page_is_valid(const struct grid *results, int64_t row)
{
    return strcmp(grid_text(results, row, "status"), "ok") == 0 &&
           strcmp(grid_text(results, row, "verdict"), "valid") == 0;
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
}

enum { NARROW_PX = 360 };

/* One picture for wide windows and one for narrow ones; the style sheet shows one of them. */
static enum status put_picture(struct page *page, const struct plot *plot, const char *stem,
                               bool narrow, struct error *err)
{
    char file[512];
    struct svg_words words = {stem, plot->title, plot->about};
    snprintf(file, sizeof(file), "%s/%s.svg", page->folder, stem);
    page_raw(page, "<div class=\"%s\">", narrow ? "narrow" : "wide");
    TRY(svg_inline(file, &words, page->out, err));
    page_raw(page, "</div>");
    return STATUS_OK;
}

static void put_caption(struct page *page, const struct plot *plot, const char *stem)
{
    page_raw(page, "<figcaption>");
    page_text(page, plot->about);
    page_raw(page,
             " <span class=\"files\"><a href=\"plots/%s.svg\">svg</a> "
             "<a href=\"plots/%s.dat\">data</a> <a href=\"plots/%s.gp\">gnuplot</a></span>",
             stem, stem, stem);
    page_raw(page, "</figcaption></figure>\n");
}

static void put_missing(struct page *page, const char *name, const char *reason)
{
    struct report_outcome *o = page->outcome;
    if (o->not_drawn++ == 0)
        snprintf(o->plot_reason, sizeof(o->plot_reason), "%s", reason);
    page_raw(page, "<p class=\"missing\">No picture here (%s): ", name);
    page_text(page, reason);
    page_raw(page, "</p>\n");
}

enum status page_figure(struct page *page, const char *name, int64_t result, struct error *err)
{
    struct plot plot;
    struct plot_outcome outcome, small;
    char stem[64], small_stem[80];
    if (result)
        snprintf(stem, sizeof(stem), "%s_%lld", name, (long long)result);
    else
        snprintf(stem, sizeof(stem), "%s", name);
    snprintf(small_stem, sizeof(small_stem), "%s_narrow", stem);
    struct plot_request request = {.name = name,
                                   .run = page->run,
                                   .result = result,
                                   .base = page->against ? page->against->store : NULL,
                                   .base_run = page->against ? page->against->run : 0,
                                   .folder = page->folder,
                                   .stem = stem,
                                   .kind = "svg"};
    TRY(plot_find(name, &plot, err));
    TRY(plot_draw(page->store, &request, &outcome, err));
    if (!outcome.drawn) {
        put_missing(page, name, outcome.reason);
        return STATUS_OK;
    }
    request.stem = small_stem;
    request.width = NARROW_PX;
    TRY(plot_draw(page->store, &request, &small, err));
    page->outcome->drawn++;
    page_raw(page, "<figure class=\"plot\">");
    TRY(put_picture(page, &plot, stem, false, err));
    if (small.drawn)
        TRY(put_picture(page, &plot, small_stem, true, err));
    put_caption(page, &plot, stem);
    return STATUS_OK;
}
