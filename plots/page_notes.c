/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands beside the number of a result: how far its visits were apart, and its notes, all of
 * which come from the view report_notes. */
#include <math.h>
#include <string.h>

#include "plots/page.h"
#include "plots/text.h"

/* ---- notes ---- */

static int count_notes(const struct page *page, int64_t result)
{
    int count = 0;
    for (int64_t row = 0; row < page->notes.row_count; row++)
        count += (int64_t)grid_number(&page->notes, row, "result") == result;
    return count;
}

void page_note_mark(struct page *page, int64_t result)
{
    int count = count_notes(page, result);
    if (count)
        page_raw(page, "<small><a href=\"#n%lld\">%d note%s</a></small>", (long long)result, count,
                 count == 1 ? "" : "s");
}

void page_notes(struct page *page, int64_t result)
{
    if (!count_notes(page, result))
        return;
    page_raw(page, "<ul class=\"notes\" id=\"n%lld\">\n", (long long)result);
    for (int64_t row = 0; row < page->notes.row_count; row++)
        if ((int64_t)grid_number(&page->notes, row, "result") == result)
            page_element(page, "li", grid_text(&page->notes, row, "note"));
    page_raw(page, "</ul>\n");
}

/* ---- visits ---- */

enum { STRIP_PX = 120, STRIP_HIGH_PX = 14 };

static bool counts(const struct grid *visits, int64_t row)
{
    return grid_number(visits, row, "apart") == 0;
}

/* Every strip of a page has the same scale, so that they can be compared: what the visits that
 * count need, but no less than 2 % and no more than 25 % to each side. */
double page_visit_scale(const struct page *page)
{
    double scale = 0.02;
    for (int64_t row = 0; row < page->visits.row_count; row++)
        if (counts(&page->visits, row))
            scale = fmax(scale, fabs(grid_number(&page->visits, row, "deviation")));
    return fmin(scale, 0.25);
}

static void put_tick(struct page *page, int64_t row, double scale)
{
    const struct grid *g = &page->visits;
    double deviation = grid_number(g, row, "deviation"), half = STRIP_PX / 2.0 - 3;
    double x = STRIP_PX / 2.0 + half * fmax(-1, fmin(1, deviation / scale));
    page_raw(page, "<path class=\"%s\" d=\"M%.1f 2V%d\"><title>round %.0f: %s, %+.1f %%",
             counts(g, row) ? "visit" : "visit apart", x, STRIP_HIGH_PX - 2,
             grid_number(g, row, "round") + 1, text_time(grid_number(g, row, "median")).s,
             100 * deviation);
    if (!counts(g, row)) {
        page_raw(page, ", ");
        page_text(page, grid_text(g, row, "reason"));
    }
    page_raw(page, "</title></path>");
}

static void put_strip(struct page *page, int64_t first, int64_t count, double scale)
{
    page_raw(page,
             "<svg class=\"visits\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"medians of the "
             "visits:",
             STRIP_PX, STRIP_HIGH_PX);
    for (int64_t row = first; row < first + count; row++)
        page_raw(page, "%s %s%s", row > first ? "," : "",
                 text_time(grid_number(&page->visits, row, "median")).s,
                 counts(&page->visits, row) ? "" : " (set apart)");
    page_raw(page, "\"><path class=\"axis\" d=\"M0 %dH%dM%d 4V%d\"/>", STRIP_HIGH_PX / 2, STRIP_PX,
             STRIP_PX / 2, STRIP_HIGH_PX - 4);
    for (int64_t row = first; row < first + count; row++)
        put_tick(page, row, scale);
    page_raw(page, "</svg>");
}

void page_visits(struct page *page, int64_t result)
{
    const struct grid *g = &page->visits;
    double low = INFINITY, high = 0;
    int64_t first = page_find(g, result), count = 0, good = 0;
    if (first < 0)
        return;
    for (int64_t row = first;
         row < g->row_count && (int64_t)grid_number(g, row, "result") == result; row++) {
        count++;
        if (!counts(g, row))
            continue;
        low = fmin(low, grid_number(g, row, "median"));
        high = fmax(high, grid_number(g, row, "median"));
        good++;
    }
    put_strip(page, first, count, page->visit_scale);
    page_raw(page, "<small>%lld visits", (long long)count);
    if (good < count)
        page_raw(page, ", %lld set apart", (long long)(count - good));
    if (good > 1)
        page_raw(page, ", %s apart", text_percent(high / low - 1).s);
    page_raw(page, "</small>");
}
