/* SPDX-License-Identifier: Apache-2.0
 *
 * What does not let a run stand as it is. However many points are concerned it takes one line of
 * the page: how many and why, and folded under it each of them with its reason. */
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"

enum { GROUPS_MAX = 12, GROUP_NAME = 40 };

/* Results that are not valid for the same kind of reason. */
struct group {
    char name[GROUP_NAME];
    int64_t count;
};

struct groups {
    struct group list[GROUPS_MAX];
    int count;
    int64_t not_valid, bad; /* bad: wrong or failed */
};

static bool is(const struct grid *grid, int64_t row, const char *column, const char *word)
{
    return strcmp(grid_text(grid, row, column), word) == 0;
}

static bool is_bad(const struct grid *results, int64_t row)
{
    return is(results, row, "status", "failed") || is(results, row, "status", "wrong");
}

/* The text after "visit 2 of 3: ", if it begins so. */
static const char *without_visit(const char *reason)
{
    int visit, visits, length = 0;
    bool found = sscanf(reason, "visit %d of %d: %n", &visit, &visits, &length) == 2 && length > 0;
    return found ? reason + length : reason;
}

/* Reasons begin with their kind: "disturbed: 2.7 % of the CPU time ...". */
static void name_group(const struct grid *results, int64_t row, char name[GROUP_NAME])
{
    const char *status = grid_text(results, row, "status"), *reason = "";
    size_t kind = 0;
    if (strcmp(status, "wrong") == 0)
        status = "wrong result";
    else if (strcmp(status, "ok") == 0)
        status = "invalid", reason = without_visit(grid_text(results, row, "reason"));
    if (strchr(reason, ':'))
        kind = strcspn(reason, ":");
    if (kind && kind < GROUP_NAME)
        snprintf(name, GROUP_NAME, "%.*s", (int)kind, reason);
    else
        snprintf(name, GROUP_NAME, "%s", status);
}

static struct group *find_group(struct groups *groups, const char *name)
{
    for (int k = 0; k < groups->count; k++)
        if (strcmp(groups->list[k].name, name) == 0)
            return &groups->list[k];
    if (groups->count == GROUPS_MAX) /* more kinds than anybody reads: the last one has the rest */
        return &groups->list[GROUPS_MAX - 1];
    struct group *group = &groups->list[groups->count++];
    snprintf(group->name, sizeof(group->name), "%s",
             groups->count == GROUPS_MAX ? "for other reasons" : name);
    return group;
}

static struct groups group_results(const struct page *page)
{
    const struct grid *g = &page->results;
    struct groups groups = {.count = 0};
    for (int64_t row = 0; row < g->row_count; row++) {
        char name[GROUP_NAME];
        if (page_is_valid(g, row))
            continue;
        name_group(g, row, name);
        find_group(&groups, name)->count++;
        groups.not_valid++;
        groups.bad += is_bad(g, row);
    }
    return groups;
}

static void put_point(struct page *page, int64_t row)
{
    const struct grid *g = &page->results;
    page_raw(page, "<li><a href=\"#r%.0f\">", grid_number(g, row, "result"));
    page_result_name(page, g, row);
    page_raw(page, ", batch %.0f", grid_number(g, row, "batch"));
    page_unusual(page, g, row);
    page_raw(page, "</a> ");
    page_text(page, grid_text(g, row, "reason"));
    page_raw(page, "</li>\n");
}

static void put_group(struct page *page, struct groups *groups, struct group *group)
{
    page_raw(page, "<p><strong>%lld ", (long long)group->count);
    page_text(page, group->name);
    page_raw(page, "</strong></p>\n<ul>\n");
    for (int64_t row = 0; row < page->results.row_count; row++) {
        char name[GROUP_NAME];
        if (page_is_valid(&page->results, row))
            continue;
        name_group(&page->results, row, name);
        if (find_group(groups, name) == group)
            put_point(page, row);
    }
    page_raw(page, "</ul>\n");
}

static void alert_points(struct page *page)
{
    struct groups groups = group_results(page);
    if (!groups.not_valid)
        return;
    page_raw(page,
             "<details class=\"banner %s\" id=\"not-valid\"><summary><strong>%lld of %lld points "
             "%s not valid:</strong> ",
             groups.bad ? "bad" : "warn", (long long)groups.not_valid,
             (long long)page->results.row_count, groups.not_valid == 1 ? "is" : "are");
    for (int k = 0; k < groups.count; k++) {
        page_raw(page, "%s%lld ", k ? ", " : "", (long long)groups.list[k].count);
        page_text(page, groups.list[k].name);
    }
    page_raw(page, "</summary>\n");
    for (int k = 0; k < groups.count; k++)
        put_group(page, &groups, &groups.list[k]);
    page_raw(page, "</details>\n");
}

/* ---- numbers that cannot be ---- */

static int64_t count_errors(const struct grid *grid)
{
    int64_t count = 0;
    for (int64_t row = 0; row < grid->row_count; row++)
        count += is(grid, row, "bound", "counting error");
    return count;
}

static int64_t count_fewer(const struct grid *grid)
{
    int64_t count = 0;
    for (int64_t row = 0; row < grid->row_count; row++)
        count += grid_number(grid, row, "fraction_of_roof") > 1.02 &&
                 strstr(grid_text(grid, row, "note"), "fewer operations") != NULL;
    return count;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void alert_counting(struct page *page)
{
    int64_t results = count_errors(&page->bounds), steps = count_errors(&page->offenders);
    int64_t fewer = count_fewer(&page->offenders);
    if (results || steps)
        page_raw(page,
                 "<details class=\"banner bad\"><summary><strong>COUNTING ERROR: %lld workload%s "
                 "and %lld step%s lie above their roof.</strong></summary><p>No machine is faster "
                 "than itself: a number is wrong. Candidates: the precision of the ceiling, the "
                 "convention of counting FLOPs, bytes that were cached, a step measured apart from "
                 "its neighbours, or a ceiling that was disturbed. Marked below.</p></details>\n",
                 (long long)results, plural(results), (long long)steps, plural(steps));
    if (fewer)
        page_raw(page,
                 "<details class=\"banner note\"><summary>%lld convolution%s by Winograd's "
                 "algorithm or without padding above the peak: no error</summary><p>Their FLOPs "
                 "are counted as a direct convolution has them, with the taps that read padding; "
                 "the kernels do fewer.</p></details>\n",
                 (long long)fewer, plural(fewer));
}

/* ---- the run ---- */

static void alert_run(struct page *page)
{
    const struct grid *runs = &page->runs;
    if (!is(runs, page->run_row, "state", "finished"))
        page_raw(page,
                 "<p class=\"banner warn\"><strong>This run did not finish</strong> (%.12s): "
                 "%.0f of %.0f points are here.</p>\n",
                 grid_text(runs, page->run_row, "state"),
                 grid_number(runs, page->run_row, "results"),
                 grid_number(runs, page->run_row, "planned"));
    if (!is(runs, page->run_row, "verdict", "valid")) {
        page_raw(page, "<p class=\"banner bad\"><strong>INVALID RUN</strong> ");
        page_text(page, grid_text(runs, page->run_row, "reason"));
        page_raw(page, "</p>\n");
    }
}

void section_alerts(struct page *page)
{
    alert_run(page);
    alert_points(page);
    alert_counting(page);
    if (!page->ceilings.row_count)
        page_raw(page,
                 "<details class=\"banner note\"><summary>This run measured no ceilings: no roofs, "
                 "no bound classes, no recoverable seconds</summary><p>A run measures them itself, "
                 "unless it is told <code>--no-ceilings</code> or its suite says "
                 "<code>measure = false</code> under <code>[ceilings]</code>.</p></details>\n");
}
