/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of the page and what fits under it on the first screen: the machine, how many points are
 * valid, how near they came to its peak, and where the most seconds could be won. Invalid results
 * are counted and enter nothing else. */
#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

enum { LOSSES_SHOWN = 3, DEVICES_MAX = 8 };

static const char dot[] = " \xc2\xb7 ";

/* ---- the machine ---- */

static void put_count(struct page *page, const char *fact, const char *one, const char *many)
{
    const char *value = page_fact_text(page, fact);
    if (!*value)
        return;
    page_text(page, value);
    page_raw(page, " %s, ", strcmp(value, "1") == 0 ? one : many);
}

/* "2 threads in use", "1 to 8 threads in use": of the points on the CPU. */
static void put_threads(struct page *page)
{
    const struct grid *g = &page->results;
    double threads_min = INFINITY, threads_max = 0;
    for (int64_t row = 0; row < g->row_count; row++)
        if (strcmp(grid_text(g, row, "device"), "cpu") == 0) {
            threads_min = fmin(threads_min, grid_number(g, row, "threads"));
            threads_max = fmax(threads_max, grid_number(g, row, "threads"));
        }
    if (!(threads_max > 0))
        page_raw(page, "no point on the CPU");
    else if (threads_min < threads_max)
        page_raw(page, "%.0f to %.0f threads in use", threads_min, threads_max);
    else
        page_raw(page, "%.0f thread%s in use", threads_max, threads_max == 1 ? "" : "s");
}

static void put_memory(struct page *page)
{
    int64_t row = page_fact(page, "memory size");
    const char *value = page_fact_text(page, "memory size");
    page_raw(page, "%s", dot);
    if (!*value) {
        page_raw(page, "size of memory not known");
        return;
    }
    page_text(page, value);
    page_raw(page, " ");
    page_text(page, grid_text(&page->environment, row, "unit"));
    page_raw(page, " memory");
}

/* The names of the GPUs that the driver reports, and the devices that points ran on. */
static void put_accelerators(struct page *page)
{
    const struct grid *e = &page->environment, *g = &page->results;
    const char *used[DEVICES_MAX];
    int names = 0, devices = 0;
    page_raw(page, "%s", dot);
    for (int64_t row = 0; row < e->row_count; row++) {
        const char *key = grid_text(e, row, "key"), *name = strstr(key, "_name");
        if (strcmp(grid_text(e, row, "category"), "gpu") != 0 || !name || name[5] ||
            strcmp(grid_text(e, row, "status"), "ok") != 0)
            continue;
        page_raw(page, "%s", names++ ? ", " : "");
        page_text(page, grid_text(e, row, "value"));
    }
    for (int64_t row = 0; row < g->row_count && devices < DEVICES_MAX; row++) {
        const char *device = grid_text(g, row, "device");
        bool seen = strcmp(device, "cpu") == 0;
        for (int k = 0; k < devices; k++)
            seen = seen || strcmp(used[k], device) == 0;
        if (seen)
            continue;
        page_raw(page, "%s", devices ? ", " : names ? " (measured on " : "measured on ");
        page_text(page, device);
        used[devices++] = device;
    }
    if (devices)
        page_raw(page, "%s", names ? ")" : "");
    else
        page_raw(page, "%s", names ? " (not measured)" : "no accelerator found");
}

static void put_machine(struct page *page)
{
    const char *model = page_fact_text(page, "cpu model_name");
    page_raw(page, "<p class=\"sub\"><strong>");
    page_text(page, *model ? model : "processor not known");
    page_raw(page, "</strong>%s", dot);
    put_count(page, "topology packages", "socket", "sockets");
    put_count(page, "topology cores", "core", "cores");
    put_count(page, "topology cpus", "hardware thread", "hardware threads");
    put_threads(page);
    put_memory(page);
    put_accelerators(page);
    page_raw(page, "</p>\n");
}

static void put_word(struct page *page, const char *before, const char *word)
{
    if (!*word)
        return;
    page_raw(page, "%s", before);
    page_text(page, word);
}

void section_head(struct page *page)
{
    const struct grid *runs = &page->runs;
    int64_t row = page->run_row;
    page_raw(page, "<header><p class=\"brand\">Ridge report</p><h1>");
    page_text(page, grid_text(runs, row, "host"));
    page_raw(page, "</h1>");
    put_machine(page);
    page_raw(page, "<p class=\"sub\">%.10s %.5s UTC", grid_text(runs, row, "started_utc"),
             strlen(grid_text(runs, row, "started_utc")) > 16
                 ? grid_text(runs, row, "started_utc") + 11
                 : "");
    put_word(page, " \xc2\xb7 Ridge ", grid_text(runs, row, "version"));
    put_word(page, ", commit ", grid_text(runs, row, "git"));
    put_word(page, dot, grid_text(runs, row, "suite"));
    page_raw(page, "%srun %.8s", dot, grid_text(runs, row, "uuid"));
    put_word(page, dot, grid_text(runs, row, "tag"));
    page_raw(page, "</p>\n<nav><a href=\"#results\">Results</a> <a href=\"#roofline\">Roofline</a> "
                   "<a href=\"#time\">Time</a> <a href=\"#steady\">Steadiness</a> <a "
                   "href=\"#machine\">Machine</a> <a href=\"#unavailable\">Not measured</a> <a "
                   "href=\"#provenance\">Provenance</a></nav></header>\n");
}

/* ---- how much is valid ---- */

static void put_valid(struct page *page)
{
    const struct grid *g = &page->results;
    int64_t valid = 0;
    for (int64_t row = 0; row < g->row_count; row++)
        valid += page_is_valid(g, row);
    page_raw(page,
             "<div class=\"tile\"><h3>Valid points</h3><p class=\"big\">%lld of %lld</p>"
             "<p class=\"note\">",
             (long long)valid, (long long)g->row_count);
    if (valid < g->row_count)
        page_raw(page,
                 "%lld not valid: listed above with the reasons; no other number on this "
                 "screen counts them.",
                 (long long)(g->row_count - valid));
    else if (valid)
        page_raw(page, "Every point was measured, and none was disturbed beyond the limits.");
    else
        page_raw(page, "No point was measured.");
    page_raw(page, " <a href=\"#results\">All results</a></p></div>\n");
}

/* ---- how near the peak ---- */

struct mean {
    double log_sum;
    int64_t n, without, above; /* without a share; above 100 % */
};

static struct mean mean_of_valid(const struct page *page)
{
    const struct grid *g = &page->results;
    struct mean mean = {.log_sum = 0};
    for (int64_t row = 0; row < g->row_count; row++) {
        double share = grid_number(g, row, "fraction_of_peak");
        if (!page_is_valid(g, row))
            continue;
        if (!(share > 0)) {
            mean.without++;
            continue;
        }
        mean.log_sum += log(share);
        mean.n++;
        mean.above += share > 1;
    }
    return mean;
}

static void put_share(struct page *page)
{
    struct mean mean = mean_of_valid(page);
    page_raw(page,
             "<div class=\"tile\"><h3>Share of peak</h3><p class=\"big\">%s</p><p class=\"note\">",
             text_percent(mean.n ? exp(mean.log_sum / (double)mean.n) : NAN).s);
    if (mean.n)
        page_raw(page,
                 "Geometric mean over %lld valid point%s (n = %lld) of FLOP/s, counted from the "
                 "model, over the peak measured in this run for the point's own precision and "
                 "device.",
                 (long long)mean.n, mean.n == 1 ? "" : "s", (long long)mean.n);
    else
        page_raw(page, "Not known: no valid point has both FLOPs and a measured peak.");
    if (mean.n && mean.without)
        page_raw(page, " %lld valid without FLOPs or peak left out.", (long long)mean.without);
    if (mean.above)
        page_raw(page, " %lld above 100 %%.", (long long)mean.above);
    page_raw(page, "</p></div>\n");
}

/* ---- what would pay ---- */

static bool is_of_valid(const struct page *page, const struct grid *grid, int64_t row)
{
    int64_t of = page_find(&page->results, (int64_t)grid_number(grid, row, "result"));
    return of >= 0 && page_is_valid(&page->results, of);
}

/* The row with the largest loss that is not taken yet; -1 when none is left. */
static int64_t next_loss(const struct page *page, const struct grid *grid, const int64_t *taken,
                         int count)
{
    int64_t best = -1;
    for (int64_t row = 0; row < grid->row_count; row++) {
        double loss = grid_number(grid, row, "recoverable");
        bool used = !(loss > 0) || (best >= 0 && loss <= grid_number(grid, best, "recoverable")) ||
                    !is_of_valid(page, grid, row);
        for (int k = 0; k < count; k++)
            used = used || taken[k] == row;
        if (!used)
            best = row;
    }
    return best;
}

static void put_loss(struct page *page, const struct grid *grid, int64_t row)
{
    int64_t result = (int64_t)grid_number(grid, row, "result");
    page_raw(page, "<li><strong>%s</strong> <a href=\"#r%lld\">",
             text_time(grid_number(grid, row, "recoverable")).s, (long long)result);
    page_result_name(page, grid, row);
    page_raw(page, "</a>, batch %.0f", grid_number(grid, row, "batch"));
    if (grid_column_find(grid, "step") >= 0) {
        double step = grid_number(grid, row, "step");
        page_raw(page, ", <a href=\"#s%lld-%.0f\">step #%.0f ", (long long)result, step, step);
        page_text(page, grid_text(grid, row, "kind"));
        page_raw(page, "</a>");
    }
    page_raw(page, " <small>of %s, at %s of its roof", text_time(grid_number(grid, row, "time")).s,
             text_percent(grid_number(grid, row, "fraction_of_roof")).s);
    if (grid_column_find(grid, "kernel") >= 0)
        put_word(page, ", ", grid_text(grid, row, "kernel"));
    page_raw(page, "</small></li>\n");
}

static void put_losses(struct page *page)
{
    const struct grid *grid = &page->offenders;
    int64_t taken[LOSSES_SHOWN] = {0};
    int count = 0;
    if (next_loss(page, grid, taken, 0) < 0)
        grid = &page->bounds;
    page_raw(page, "<div class=\"tile wide-tile\"><h3>Largest recoverable losses, in seconds per "
                   "execution</h3>\n");
    for (; count < LOSSES_SHOWN; count++) {
        taken[count] = next_loss(page, grid, taken, count);
        if (taken[count] < 0)
            break;
        page_raw(page, "%s", count ? "" : "<ol class=\"losses\">\n");
        put_loss(page, grid, taken[count]);
    }
    page_raw(page, "%s<p class=\"note\">%s</p></div>\n", count ? "</ol>" : "",
             count ? "Median time less the least time that the peak and the bandwidths measured in "
                     "this run allow. Each workload lists its steps."
                   : "Not known: no valid point has both a time and the ceilings of this machine.");
}

void section_glance(struct page *page)
{
    page_raw(page, "<section id=\"glance\"><h2>At a glance</h2>\n<div class=\"tiles\">\n");
    put_valid(page);
    put_share(page);
    put_losses(page);
    page_raw(page, "</div></section>\n");
}
