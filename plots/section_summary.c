/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of results and the plots of the whole run. */
#include <math.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static bool is(const struct grid *grid, int64_t row, const char *column, const char *word)
{
    return strcmp(grid_text(grid, row, column), word) == 0;
}

/* ---- the table ---- */

#define REMOVED_SHOWN 0.02 /* share of the FLOPs: less does not show in a share of the roof */

static void put_bound(struct page *page, int64_t result)
{
    int64_t row = page_find(&page->bounds, result);
    page_raw(page, "<td data-label=\"Bound by\" class=\"reason\">");
    if (row < 0) {
        page_raw(page, "\xe2\x80\x93</td>");
        return;
    }
    const struct grid *b = &page->bounds;
    const char *note = grid_text(b, row, "note");
    page_element(page, "strong", grid_text(b, row, "bound"));
    double share = grid_number(b, row, "fraction_of_roof");
    if (*note)
        page_element(page, "small", note);
    else if (isfinite(share))
        page_raw(page, "<small>%s of its roof; %s FLOP/B, ridge %s</small>", text_percent(share).s,
                 text_number(grid_number(b, row, "intensity")).s,
                 text_number(grid_number(b, row, "ridge")).s);
    double removed = grid_number(b, row, "flops_removed") / grid_number(b, row, "flops");
    if (removed >= REMOVED_SHOWN)
        page_raw(page, "<small>the roof is without the %s of the FLOPs that passes removed</small>",
                 text_percent(removed).s);
    page_raw(page, "</td>");
}

static void put_median(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    double median = grid_number(g, row, "median");
    double half =
        stats_half_width(median, grid_number(g, row, "ci_low"), grid_number(g, row, "ci_high"));
    page_raw(page,
             "<td class=\"num\" data-label=\"Median time\" data-sort=\"%s\"><strong>%s</strong>",
             page_sort_key(median).s, text_time(median).s);
    if (isfinite(half))
        page_raw(page, "<small>\xc2\xb1 %s, n = %.0f</small>", text_percent(half / median).s,
                 grid_number(g, row, "n"));
    page_visits(page, (int64_t)grid_number(g, row, "result"));
    page_raw(page, "</td>");
}

static void put_verified(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    double error = grid_number(g, row, "verify_error");
    if (!isfinite(error)) {
        page_number(page, "Verified", NAN, "not verified");
        return;
    }
    page_raw(page,
             "<td class=\"num\" data-label=\"Verified\" data-sort=\"%.9g\">%.1e<small>bound "
             "%.0e</small></td>",
             error, error, grid_number(g, row, "verify_bound"));
}

static void put_verdict(struct page *page, int64_t row)
{
    const char *status = grid_text(&page->results, row, "status");
    bool ok = strcmp(status, "ok") == 0;
    bool valid = ok && is(&page->results, row, "verdict", "valid");
    page_raw(page, "<td data-label=\"Verdict\"><span class=\"chip %s\">",
             valid                                  ? "good"
             : ok || strcmp(status, "skipped") == 0 ? "warn"
                                                    : "bad");
    page_text(page, valid ? "valid" : ok ? "invalid" : status);
    page_raw(page, "</span>");
    page_note_mark(page, (int64_t)grid_number(&page->results, row, "result"));
    page_raw(page, "</td>");
}

static void put_row(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    int64_t result = (int64_t)grid_number(g, row, "result");
    page_raw(page, "<tr id=\"p%lld\"><th scope=\"row\"><a href=\"#r%lld\">", (long long)result,
             (long long)result);
    page_result_name(page, g, row);
    page_raw(page, "</a><small>batch %.0f \xc2\xb7 ", grid_number(g, row, "batch"));
    page_text(page, grid_text(g, row, "precision"));
    page_raw(page, " \xc2\xb7 %.0f thread%s", grid_number(g, row, "threads"),
             grid_number(g, row, "threads") == 1 ? "" : "s");
    page_unusual(page, g, row);
    page_raw(page, "</small></th>");
    put_median(page, row);
    double rate = grid_number(g, row, "throughput"), flops = grid_number(g, row, "flop_rate");
    double peak = grid_number(g, row, "fraction_of_peak");
    page_number(page, "Throughput", rate, text_scaled(rate, "/s").s);
    page_number(page, "Performance", flops, text_scaled(flops, "FLOP/s").s);
    page_number(page, "Of peak", peak, text_percent(peak).s);
    put_bound(page, result);
    put_verified(page, row);
    put_verdict(page, row);
    page_raw(page, "</tr>\n");
}

void section_headline(struct page *page)
{
    static const char *const titles[] = {"Workload", "#Median time", "#Throughput", "#Performance",
                                         "#Of peak", "Bound by",     "#Verified",   "Verdict"};
    page_raw(page, "<section id=\"results\"><h2>Results</h2>\n");
    page_begin_table(page, "headline sortable", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < page->results.row_count; row++)
        put_row(page, row);
    page_end_table(page);
    page_raw(page,
             "<p class=\"note\">Median with the half-width of its 95 %% interval, n samples. "
             "Throughput counts batch items. Performance is counted FLOPs (a multiply-add is "
             "two) over median time; the peak was measured on this machine. Verified: largest "
             "relative error against the same graph in float64.");
    if (page->visits.row_count)
        page_raw(page,
                 " Strips: the median of each visit, from %.3g %% under the point's median to "
                 "%.3g %% over it; dotted is set apart and does not count.",
                 100 * page->visit_scale, 100 * page->visit_scale);
    page_raw(page, "</p></section>\n");
}

enum status section_overview(struct page *page, struct error *err)
{
    page_raw(page, "<section id=\"roofline\"><h2>Against the machine</h2>\n");
    TRY(page_figure(page, "roofline", 0, err));
    bool counted = false;
    for (int64_t row = 0; row < page->counted.row_count; row++)
        counted = counted || isfinite(grid_number(&page->counted, row, "dram_read"));
    page_raw(
        page, "<p class=\"note\">%s</p>\n",
        counted
            ? "Intensity is analytic: the model's FLOPs over the bytes that must move at "
              "least. What the hardware counted is shown with each workload."
            : "Intensity is analytic: the model's FLOPs over the bytes that must move at "
              "least. No memory traffic was counted in this run; the end of the page says why.");
    if (counted)
        TRY(page_figure(page, "roofline_counted", 0, err));
    page_raw(page, "</section>\n<section id=\"time\"><h2>Where the time goes</h2>\n");
    TRY(page_figure(page, "breakdown", 0, err));
    page_raw(page, "</section>\n<section id=\"steady\"><h2>How steady it was</h2>\n");
    TRY(page_figure(page, "spread", 0, err));
    page_raw(page, "</section>\n");
    return STATUS_OK;
}
