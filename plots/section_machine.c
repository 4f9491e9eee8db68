/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the report: the machine, its ceilings, what could not be measured, where numbers come
 * from.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static bool is(const struct grid *grid, int64_t row, const char *column, const char *word)
{
    return strcmp(grid_text(grid, row, column), word) == 0;
}

/* ---- facts ---- */

static struct short_text fact_value(const struct grid *g, int64_t row)
{
    struct short_text text = {""};
    char *end;
    const char *value = grid_text(g, row, "value"), *unit = grid_text(g, row, "unit");
    double number = strtod(value, &end);
    if (strcmp(unit, "B") == 0 && *value && !*end)
        return text_bytes(number);
    if ((strcmp(unit, "KiB") == 0 || strcmp(unit, "kB") == 0) && *value && !*end)
        return text_bytes(number * 1024); /* the kernel writes kB and means KiB */
    if (strcmp(unit, "Hz") == 0 && *value && !*end)
        return text_scaled(number, "Hz");
    return text;
}

/* Some files of the system keep their values in quotes. */
static void put_unquoted(struct page *page, const char *value)
{
    size_t length = strlen(value);
    if (length < 2 || length > 200 || value[0] != '"' || value[length - 1] != '"') {
        page_text(page, value);
        return;
    }
    char inside[200];
    snprintf(inside, sizeof(inside), "%.*s", (int)length - 2, value + 1);
    page_text(page, inside);
}

static void put_value(struct page *page, int64_t row)
{
    const struct grid *g = &page->environment;
    struct short_text nice = fact_value(g, row);
    if (!is(g, row, "status", "ok")) {
        page_raw(page, "<em>");
        page_text(page, grid_text(g, row, "status"));
        page_raw(page, "</em>");
        return;
    }
    put_unquoted(page, *nice.s ? nice.s : grid_text(g, row, "value"));
    const char *unit = grid_text(g, row, "unit");
    if (!*nice.s && *unit && strcmp(unit, "1") != 0) {
        page_raw(page, " ");
        page_text(page, unit);
    }
    const char *after = grid_text(g, row, "value_after");
    if (*after && strcmp(after, grid_text(g, row, "value")) != 0) {
        page_raw(page, " <small>after the run ");
        page_text(page, after);
        page_raw(page, "</small>");
    }
}

struct asked {
    const char *key; /* "category key" */
    const char *name;
};

/* What the reader asks first; the rest stays folded. */
static const struct asked asked[] = {
    {"cpu model_name", "Processor"},
    {"identity product", "Machine"},
    {"topology packages", "Sockets"},
    {"topology cores", "Cores"},
    {"topology cpus", "Hardware threads"},
    {"topology numa_nodes", "Memory nodes"},
    {"topology l1d", "L1 data cache"},
    {"topology l2", "L2 cache"},
    {"topology l3", "L3 cache"},
    {"memory size", "Memory"},
    {"memory thp", "Huge pages"},
    {"gpu 0_name", "GPU"},
    {"gpu count", "GPUs"},
    {"gpu driver", "GPU driver"},
    {"cpu_state governor", "Governor"},
    {"cpu_state boost", "Boost"},
    {"cpu_state no_turbo", "Turbo off"},
    {"cpu_state smt", "SMT"},
    {"cpu microcode", "Microcode"},
    {"kernel release", "Kernel"},
    {"kernel distribution", "System"},
    {"container hypervisor", "Hypervisor"},
    {"permission perf_event_paranoid", "perf_event_paranoid"},
};

static void put_summary(struct page *page)
{
    page_raw(page, "<dl class=\"facts\">\n");
    for (int k = 0; k < ARRAY_COUNT(asked); k++) {
        int64_t row = page_fact(page, asked[k].key);
        if (row < 0 || (!is(&page->environment, row, "status", "ok") &&
                        !is(&page->environment, row, "category", "cpu_state")))
            continue;
        page_raw(page, "<div><dt>%s</dt><dd>", asked[k].name);
        put_value(page, row);
        page_raw(page, "</dd></div>\n");
    }
    page_raw(page, "</dl>\n");
}

static void put_all_facts(struct page *page)
{
    static const char *const titles[] = {"Fact", "Value", "Kind", "Read from"};
    const struct grid *g = &page->environment;
    page_raw(page, "<details><summary>All %lld facts of the environment</summary>\n",
             (long long)g->row_count);
    page_begin_table(page, "sortable wide", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < g->row_count; row++) {
        page_raw(page, "<tr><td>");
        page_text(page, grid_text(g, row, "category"));
        page_raw(page, " ");
        page_text(page, grid_text(g, row, "key"));
        page_raw(page, "</td><td class=\"long\">");
        put_value(page, row);
        page_raw(page, "</td>");
        page_cell(page, "Kind", grid_text(g, row, "class"));
        page_cell(page, "Read from", grid_text(g, row, "source"));
        page_raw(page, "</tr>\n");
    }
    page_end_table(page);
    page_raw(page, "</details>\n");
}

/* ---- ceilings ---- */

/* And at which clock, where that is known. */
static void put_how(struct page *page, int64_t row)
{
    const struct grid *g = &page->ceilings;
    const char *reason = grid_text(g, row, "reason"), *how = grid_text(g, row, "how");
    double clock = grid_number(g, row, "clock");
    char text[80];
    snprintf(text, sizeof(text), "%s at %s", how, text_scaled(clock, "Hz").s);
    page_cell(page, "How", *reason ? reason : clock > 0 ? text : how);
}

static void put_ceiling(struct page *page, int64_t row)
{
    const struct grid *g = &page->ceilings;
    double value = grid_number(g, row, "value");
    double spread = (grid_number(g, row, "max") - grid_number(g, row, "min")) / value;
    page_raw(page, "<tr>");
    page_cell(page, "Ceiling", grid_text(g, row, "name"));
    bool cpu = is(g, row, "device", "cpu"), time = is(g, row, "unit", "s");
    page_cell(page, "Device", grid_text(g, row, "device"));
    page_number(page, "Threads", grid_number(g, row, "threads"),
                cpu ? grid_text(g, row, "threads") : "\xe2\x80\x93");
    page_number(page, "Value", value,
                time ? text_time(value).s : text_scaled(value, grid_text(g, row, "unit")).s);
    page_number(page, "Spread", spread, text_percent(spread).s);
    page_number(page, "Working set", grid_number(g, row, "working_set"),
                text_bytes(grid_number(g, row, "working_set")).s);
    put_how(page, row);
    page_raw(page, "</tr>\n");
}

static void put_ceilings(struct page *page)
{
    static const char *const titles[] = {"Ceiling", "Device",       "#Threads", "#Value",
                                         "#Spread", "#Working set", "How"};
    if (!page->ceilings.row_count)
        return;
    page_raw(page,
             "<h3>Ceilings</h3><p>Measured on this machine in this run, on %.10s; spread is "
             "largest less smallest over its repeats.</p>\n",
             grid_text(&page->runs, page->run_row, "started_utc"));
    page_raw(page, "<details><summary>All %lld ceilings</summary>\n",
             (long long)page->ceilings.row_count);
    page_begin_table(page, "sortable wide", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < page->ceilings.row_count; row++)
        put_ceiling(page, row);
    page_end_table(page);
    page_raw(page, "</details>\n");
}

void section_machine(struct page *page)
{
    page_raw(page, "<section id=\"machine\"><h2>The machine</h2>\n");
    if (page->environment.row_count) {
        put_summary(page);
        put_all_facts(page);
    } else {
        page_raw(page, "<p class=\"missing\">This run recorded no facts of its environment.</p>\n");
    }
    put_ceilings(page);
    page_raw(page, "</section>\n");
}

/* ---- what is missing ---- */

void section_unavailable(struct page *page)
{
    static const char *const titles[] = {"What", "Source", "Why not", "#Results"};
    const struct grid *g = &page->unavailable;
    page_raw(page, "<section id=\"unavailable\"><h2>What could not be measured</h2>\n");
    if (!g->row_count) {
        page_raw(page, "<p>Everything that was asked for was measured.</p></section>\n");
        return;
    }
    page_begin_table(page, "wide", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < g->row_count; row++) {
        page_raw(page, "<tr>");
        page_cell(page, "What", grid_text(g, row, "name"));
        page_raw(page, "<td class=\"long\" data-label=\"Source\">");
        page_text(page, grid_text(g, row, "source"));
        page_raw(page, "</td><td class=\"long why\" data-label=\"Why not\">");
        page_text(page, grid_text(g, row, "reason"));
        page_raw(page, "</td>");
        double results = grid_number(g, row, "results");
        page_number(page, "Results", results, results > 0 ? grid_text(g, row, "results") : "");
        page_raw(page, "</tr>\n");
    }
    page_end_table(page);
    page_raw(page, "</section>\n");
}

/* ---- provenance ---- */

static double sum_samples(const struct page *page)
{
    double sum = 0;
    for (int64_t row = 0; row < page->results.row_count; row++) {
        double n = grid_number(&page->results, row, "n");
        sum += isfinite(n) ? n : 0;
    }
    return sum;
}

void section_provenance(struct page *page)
{
    const struct grid *g = &page->runs;
    int64_t row = page->run_row;
    page_raw(page, "<section id=\"provenance\"><h2>Provenance</h2>\n<dl class=\"facts\">\n");
    page_term(page, "Run", grid_text(g, row, "uuid"));
    page_term(page, "Started", grid_text(g, row, "started_utc"));
    page_term(page, "Ended", grid_text(g, row, "ended_utc"));
    page_term(page, "Command", grid_text(g, row, "command"));
    page_term(page, "Suite", grid_text(g, row, "suite"));
    page_term(page, "Ridge", grid_text(g, row, "version"));
    page_term(page, "Commit", grid_text(g, row, "git"));
    page_term(page, "Branch", grid_text(g, row, "branch"));
    page_term(page, "Build", grid_text(g, row, "config"));
    page_term(page, "Compiler", grid_text(g, row, "compiler"));
    page_term(page, "Environment", grid_text(g, row, "environment"));
    page_raw(page, "<div><dt>Samples</dt><dd>%.0f</dd></div>\n</dl>\n", sum_samples(page));
    page_raw(
        page,
        "<p class=\"note\">Times: monotonic clock, each execution alone, warm-up left out, medians "
        "(source <code>clock</code>). FLOPs and bytes: counted on paper from the graph (source "
        "<code>model</code>), compulsory bytes move each tensor once; where hardware counters "
        "could "
        "be read they are stored beside (source <code>papi</code>). Intensity here is model FLOPs "
        "over "
        "compulsory bytes, read and written. Time and counts come from separate phases. Times of "
        "steps "
        "are measured one step at a time, so their sum differs from the time of the whole. "
        "Ceilings: "
        "FMA loops and read, copy and triad loops on this machine in this run, best pattern "
        "each.</p>"
        "</section>\n");
}
