/* SPDX-License-Identifier: Apache-2.0
 *
 * A section per result: its numbers, its roofline, where its time goes, what would pay. */
#include <math.h>
#include <string.h>

#include "base/numbers/series.h"
#include "base/registry.h"
#include "plots/page.h"
#include "plots/palette.h"
#include "plots/text.h"

static void put_scenario(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    page_raw(page, "<div><dt>Scenario</dt><dd>");
    page_text(page, grid_text(g, row, "mode"));
    page_raw(page, ", ");
    page_text(page, grid_text(g, row, "scenario"));
    page_raw(page, ", ");
    page_text(page, grid_text(g, row, "cache"));
    page_raw(page, " caches</dd></div>\n");
}

static void put_traffic(struct page *page, const struct grid *g, int64_t row)
{
    double read = grid_number(g, row, "dram_read"), written = grid_number(g, row, "dram_write");
    double flops = grid_number(g, row, "flops");
    page_raw(page, "<div><dt>DRAM counted: read / written</dt><dd>%s / %s</dd></div>\n",
             text_bytes(read).s, text_bytes(written).s);
    page_raw(page,
             "<div><dt>FLOP/B counted: read and written / read alone</dt><dd>%s / %s</dd></div>\n",
             text_number(flops / (read + written)).s, text_number(flops / read).s);
}

/* By how much the steps' FLOPs differ from the graph's, and through which passes. */
static void put_passes(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    double flops = grid_number(g, row, "flops_by_passes");
    if (!isfinite(flops))
        return;
    page_raw(page, "<div><dt>FLOPs that passes added or removed</dt><dd>");
    if (flops != 0)
        page_raw(page, "%s: ", text_scaled(flops, "FLOP").s);
    page_text(page, grid_text(g, row, "passes"));
    page_raw(page, "</dd></div>\n");
}

/* What the hardware counted, where it could. */
static void put_counted(struct page *page, int64_t result)
{
    const struct grid *g = &page->counted;
    int64_t row = page_find(g, result);
    double flops = row < 0 ? NAN : grid_number(g, row, "flops_counted");
    double read = row < 0 ? NAN : grid_number(g, row, "dram_read");
    if (isfinite(flops))
        page_raw(
            page, "<div><dt>FLOPs counted by hardware</dt><dd>%s, %s of the model's</dd></div>\n",
            text_scaled(flops, "FLOP").s, text_percent(flops / grid_number(g, row, "flops")).s);
    if (isfinite(read))
        put_traffic(page, g, row);
}

/* A server's quantiles are of queries, which wait; an execution does not. */
static void put_times(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    struct short_text fastest = text_time(grid_number(g, row, "min"));
    struct short_text median = text_time(grid_number(g, row, "median"));
    struct short_text p50 = text_time(grid_number(g, row, "p50"));
    struct short_text p90 = text_time(grid_number(g, row, "p90"));
    struct short_text p99 = text_time(grid_number(g, row, "p99"));
    if (strcmp(grid_text(g, row, "scenario"), "server") != 0) {
        page_raw(page,
                 "<div><dt>Time: fastest / median / p90 / p99</dt><dd>%s / %s / %s / %s"
                 "</dd></div>\n",
                 fastest.s, median.s, p90.s, p99.s);
        return;
    }
    page_raw(page, "<div><dt>Time of an execution: fastest / median</dt><dd>%s / %s</dd></div>\n",
             fastest.s, median.s);
    page_raw(page,
             "<div><dt>Time of a query, with that in the queue: median / p90 / p99</dt>"
             "<dd>%s / %s / %s</dd></div>\n",
             p50.s, p90.s, p99.s);
}

static void put_facts(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    page_raw(page, "<dl class=\"facts\">\n");
    put_scenario(page, row);
    put_times(page, row);
    page_raw(
        page, "<div><dt>Memory: weights / planned / resident</dt><dd>%s / %s / %s</dd></div>\n",
        text_bytes(grid_number(g, row, "weights")).s, text_bytes(grid_number(g, row, "arena")).s,
        text_bytes(grid_number(g, row, "peak_rss")).s);
    page_raw(page, "<div><dt>Bytes: compulsory / streamed</dt><dd>%s / %s</dd></div>\n",
             text_bytes(grid_number(g, row, "bytes_compulsory")).s,
             text_bytes(grid_number(g, row, "bytes_streamed")).s);
    page_term(page, "FLOPs of one execution", text_scaled(grid_number(g, row, "flops"), "FLOP").s);
    put_passes(page, row);
    put_counted(page, (int64_t)grid_number(g, row, "result"));
    if (isfinite(grid_number(g, row, "energy")))
        page_term(page, "Energy of one execution",
                  text_scaled(grid_number(g, row, "energy"), "J").s);
    if (isfinite(grid_number(g, row, "server_rate")))
        page_term(page, "Highest rate within the latency bound",
                  text_scaled(grid_number(g, row, "server_rate"), "/s").s);
    page_term(page, "Sampling ended by", grid_text(g, row, "stop_reason"));
    page_raw(page, "</dl>\n");
}

/* ---- the sentence ---- */

struct summary {
    double known_s, low_s, recoverable_s, all_s;
    int64_t steps;
};

static struct summary summarise(const struct page *page, int64_t result)
{
    const struct grid *g = &page->offenders;
    struct summary s = {.known_s = 0};
    int count;
    const int64_t *rows = page_steps(page, result, &count);
    for (int k = 0; k < count; k++) {
        int64_t row = rows[k];
        double time = grid_number(g, row, "time"), share = grid_number(g, row, "fraction_of_roof");
        double gain = grid_number(g, row, "recoverable");
        s.steps++;
        if (!isfinite(time))
            continue;
        s.all_s += time;
        if (!isfinite(share))
            continue;
        s.known_s += time;
        s.low_s += share < 0.3 ? time : 0;
        s.recoverable_s += isfinite(gain) ? gain : 0;
    }
    return s;
}

static void put_sentence(struct page *page, const struct summary *s)
{
    if (!s->steps)
        page_raw(page, "<p class=\"missing\">No steps were timed for this result.</p>\n");
    else if (!(s->known_s > 0))
        page_raw(page,
                 "<p class=\"lead\">How far the %lld kernels are from their roofs is not known: "
                 "this run has no ceilings for them.</p>\n",
                 (long long)s->steps);
    else
        page_raw(page,
                 "<p class=\"lead\"><strong>%s of the time is in kernels below 30 %% of their "
                 "roof.</strong> %s of %s could be won if every one of the %lld steps reached "
                 "its roof.</p>\n",
                 text_percent(s->low_s / s->known_s).s, text_time(s->recoverable_s).s,
                 text_time(s->all_s).s, (long long)s->steps);
}

/* ---- tables ---- */

/* Rows of `kinds` of a result stand together: [first, end). */
static int64_t end_of(const struct grid *kinds, int64_t first, int64_t result)
{
    int64_t end = first;
    while (end < kinds->row_count && (int64_t)grid_number(kinds, end, "result") == result)
        end++;
    return end;
}

static double time_of(const struct grid *kinds, int64_t first, int64_t end)
{
    double sum = 0;
    for (int64_t row = first; row < end; row++)
        sum += grid_number(kinds, row, "seconds") > 0 ? grid_number(kinds, row, "seconds") : 0;
    return sum;
}

static void put_kind(struct page *page, int64_t row, double total)
{
    const struct grid *g = &page->kinds;
    const char *kind = grid_text(g, row, "kind");
    double seconds = grid_number(g, row, "seconds"), flops = grid_number(g, row, "flops");
    double share = total > 0 && isfinite(seconds) ? seconds / total : NAN;
    double rate = flops > 0 ? flops / seconds : NAN;
    page_raw(page, "<tr>");
    page_cell(page, "Operator", kind);
    page_number(page, "Steps", grid_number(g, row, "steps"), grid_text(g, row, "steps"));
    page_number(page, "Time", seconds, text_time(seconds).s);
    page_raw(page,
             "<td data-label=\"Share\" data-sort=\"%s\" class=\"share\"><span class=\"bar\" "
             "style=\"width:%.1f%%;background:#%06x\"></span><span>%s</span></td>",
             page_sort_key(share).s, isfinite(share) ? 60 * share : 0,
             palette_at(palette_of_kind(kind))->rgb, text_percent(share).s);
    page_number(page, "Performance", rate, text_scaled(rate, "FLOP/s").s);
    double bytes = grid_number(g, row, "bytes") / seconds;
    page_number(page, "Streamed", bytes, text_scaled(bytes, "B/s").s);
    page_raw(page, "</tr>\n");
}

static void put_kinds(struct page *page, int64_t result)
{
    static const char *const titles[] = {"Operator", "#Steps",       "#Time",
                                         "Share",    "#Performance", "#Streamed"};
    const struct grid *kinds = &page->kinds;
    int64_t first = page_find(kinds, result), end = first < 0 ? -1 : end_of(kinds, first, result);
    double total = time_of(kinds, first, end);
    if (!(total > 0))
        return;
    page_raw(page, "<h4>Time by operator</h4>\n");
    page_begin_table(page, "sortable", titles, ARRAY_COUNT(titles));
    for (int64_t row = first; row < end; row++)
        put_kind(page, row, total);
    page_end_table(page);
}

static void put_offender(struct page *page, int64_t row, double total)
{
    const struct grid *g = &page->offenders;
    double time = grid_number(g, row, "time"), rate = grid_number(g, row, "flop_rate");
    double share = grid_number(g, row, "fraction_of_roof");
    double gain = grid_number(g, row, "recoverable");
    bool error = strcmp(grid_text(g, row, "bound"), "counting error") == 0;
    page_raw(page,
             "<tr%s id=\"s%.0f-%.0f\"><td data-label=\"Step\" data-sort=\"%.0f\" class=\"step\">"
             "<strong>#%.0f</strong> ",
             error ? " class=\"bad\"" : "", grid_number(g, row, "result"),
             grid_number(g, row, "step"), grid_number(g, row, "step"), grid_number(g, row, "step"));
    page_text(page, grid_text(g, row, "kind"));
    page_element(page, "small", grid_text(g, row, "name"));
    page_raw(page, "</td><td data-label=\"Kernel\" class=\"kernel\">");
    page_text(page, grid_text(g, row, "kernel"));
    page_element(page, "small", grid_text(g, row, "shape"));
    page_raw(page, "</td>");
    page_number(page, "Recoverable", gain, text_time(gain).s);
    page_number(page, "Time", time, text_time(time).s);
    page_number(page, "Share", time / total, text_percent(time / total).s);
    page_number(page, "FLOP/B", grid_number(g, row, "intensity"),
                text_number(grid_number(g, row, "intensity")).s);
    page_number(page, "Performance", rate,
                rate > 0 ? text_scaled(rate, "FLOP/s").s : "\xe2\x80\x93");
    page_number(page, "Of its roof", share, text_percent(share).s);
    page_raw(page, "<td data-label=\"Bound by\" class=\"reason\">");
    page_text(page, grid_text(g, row, "bound"));
    if (*grid_text(g, row, "note"))
        page_element(page, "small", grid_text(g, row, "note"));
    page_raw(page, "</td></tr>\n");
}

static void put_offenders(struct page *page, int64_t result, const struct summary *summary)
{
    static const char *const titles[] = {"Step",         "Kernel",       "#Recoverable",
                                         "#Time",        "#Share",       "#FLOP/B",
                                         "#Performance", "#Of its roof", "Bound by"};
    if (!(summary->all_s > 0))
        return;
    int shown = 0, count;
    const int64_t *rows = page_steps(page, result, &count);
    page_raw(page, "<h4>Top offenders by recoverable seconds</h4>\n");
    page_begin_table(page, "sortable", titles, ARRAY_COUNT(titles));
    for (int k = 0; k < count; k++)
        if (page_shows_step(page, rows, k)) {
            put_offender(page, rows[k], summary->all_s);
            shown++;
        }
    page_end_table(page);
    if (shown < summary->steps)
        page_raw(page,
                 "<p class=\"note\">%d of %lld steps. Recoverable: time less the time at the "
                 "roof that the step is under.</p>\n",
                 shown, (long long)summary->steps);
}

/* ---- the section ---- */

static void put_title(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    page_raw(page, "<h3>");
    page_result_name(page, g, row);
    page_raw(page, " <small>batch %.0f", grid_number(g, row, "batch"));
    page_unusual(page, g, row);
    page_raw(page, "</small></h3>\n");
}

static void put_reproduce(struct page *page, int64_t row)
{
    const char *line = grid_text(&page->results, row, "reproduce");
    if (!*line)
        return;
    page_raw(page, "<p class=\"note\">Measure it again: <code>");
    page_text(page, line);
    page_raw(page, "</code></p>\n");
}

/* A single run has no history. */
static enum status put_history(struct page *page, int64_t result, struct error *err)
{
    struct grid grid;
    struct query_value value = {.name = "result", .number = (double)result};
    TRY(query_view(page->store, "report_history", &value, 1, &grid, err));
    int64_t runs = grid.row_count, shares = 0, good = 0;
    for (int64_t row = 0; row < runs; row++) {
        shares += isfinite(grid_number(&grid, row, "fraction_of_roof"));
        good += grid_number(&grid, row, "valid") != 0;
    }
    grid_release(&grid);
    if (runs < 2)
        return STATUS_OK;
    page_raw(page, "<h4>History</h4>\n");
    TRY(page_figure(page, "history", result, err));
    if (good < SERIES_TO_JUDGE)
        page_raw(
            page,
            "<p class=\"note\">%lld valid run%s: under %d no change of level can be distinguished "
            "from noise.</p>\n",
            (long long)good, good == 1 ? "" : "s", SERIES_TO_JUDGE);
    return shares > 1 ? page_figure(page, "history_roof", result, err) : STATUS_OK;
}

/* What one process executed: its work, and step by step how far it is from the roof. */
static enum status put_execution(struct page *page, int64_t row, int64_t result, struct error *err)
{
    struct summary summary = summarise(page, result);
    put_sentence(page, &summary);
    put_facts(page, row);
    if (summary.steps)
        TRY(page_figure(page, "roofline_ops", result, err));
    TRY(section_phases(page, result, err));
    put_kinds(page, result);
    put_offenders(page, result, &summary);
    return section_counted(page, result, err);
}

static enum status put_details(struct page *page, int64_t row, struct error *err)
{
    int64_t result = (int64_t)grid_number(&page->results, row, "result");
    bool of_ranks;
    TRY(section_ranks(page, result, &of_ranks, err));
    if (!of_ranks)
        TRY(put_execution(page, row, result, err));
    if (!page_is_pictured(page, result)) {
        page_raw(page,
                 "<p class=\"missing\">No pictures of this point: of more than %d points those "
                 "with the most recoverable seconds have them. <code>ridge plot latency "
                 "--result %lld</code> draws one.</p>\n",
                 PAGE_PICTURED_MAX, (long long)result);
        return STATUS_OK;
    }
    page_raw(page, "<h4>Latency</h4>\n");
    TRY(page_figure(page, "latency", result, err));
    return put_history(page, result, err);
}

enum status section_workload(struct page *page, int64_t row, struct error *err)
{
    const struct grid *g = &page->results;
    bool ok = strcmp(grid_text(g, row, "status"), "ok") == 0;
    bool valid = strcmp(grid_text(g, row, "verdict"), "valid") == 0;
    page_raw(page, "<section class=\"workload%s\" id=\"r%.0f\">", ok ? " measured" : "",
             grid_number(g, row, "result"));
    put_title(page, row);
    if (!ok || !valid) {
        bool wrong = strcmp(grid_text(g, row, "status"), "wrong") == 0;
        page_raw(page, "<p class=\"banner %s\"><strong>%s</strong> ", ok ? "warn" : "bad",
                 ok      ? "INVALID"
                 : wrong ? "WRONG RESULT"
                         : "NOT MEASURED");
        page_text(page, grid_text(g, row, "reason"));
        page_raw(page, "</p>\n");
    }
    page_notes(page, (int64_t)grid_number(g, row, "result"));
    enum status status = ok ? put_details(page, row, err) : STATUS_OK;
    put_reproduce(page, row);
    page_raw(page, "</section>\n");
    return status;
}
