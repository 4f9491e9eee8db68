/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/report.h"

#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "base/system/file.h"
#include "base/system/output.h"
#include "plots/page.h"
#include "plots/plot.h"

struct reading {
    const char *view;
    struct grid *grid;
};

static enum status find_run(const struct grid *runs, int64_t run, int64_t *row, struct error *err)
{
    for (*row = 0; *row < runs->row_count; ++*row)
        if ((int64_t)grid_number(runs, *row, "run") == run)
            return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "the database has no run %lld", (long long)run);
}

static enum status read_grids(struct page *page, struct error *err)
{
    const struct reading readings[] = {
        {"runs", &page->runs},
        {"results", &page->results},
        {"report_results", &page->counted},
        {"bounds", &page->bounds},
        {"offenders", &page->offenders},
        {"report_kinds", &page->kinds},
        {"report_roofs", &page->roofs},
        {"ceilings", &page->ceilings},
        {"environment", &page->environment},
        {"unavailable", &page->unavailable},
        {"report_visits", &page->visits},
        {"report_notes", &page->notes},
    };
    struct query_value run = {.name = "run", .number = (double)page->run};
    for (int k = 0; k < ARRAY_COUNT(readings); k++)
        TRY(query_view(page->store, readings[k].view, &run, 1, readings[k].grid, err));
    page->visit_scale = page_visit_scale(page);
    TRY(page_index_steps(page, err));
    return find_run(&page->runs, page->run, &page->run_row, err);
}

static enum status read_base(struct page *page, struct error *err)
{
    const struct report_against *a = page->against;
    if (!a)
        return STATUS_OK;
    struct query_value run = {.name = "run", .number = (double)a->run};
    TRY(query_view(a->store, "runs", NULL, 0, &page->base_runs, err));
    TRY(query_view(a->store, "bounds", &run, 1, &page->base_bounds, err));
    return find_run(&page->base_runs, a->run, &page->base_run_row, err);
}

static void release(struct page *page)
{
    struct grid *grids[] = {&page->counted,     &page->runs,      &page->results,
                            &page->bounds,      &page->offenders, &page->kinds,
                            &page->roofs,       &page->ceilings,  &page->environment,
                            &page->unavailable, &page->base_runs, &page->base_bounds,
                            &page->visits,      &page->notes};
    for (int k = 0; k < ARRAY_COUNT(grids); k++)
        grid_release(grids[k]);
    arena_release(&page->arena);
}

static void put_embedded(struct page *page, const char *tag, const char *path)
{
    const struct embedded *file = embedded_find(path);
    page_raw(page, "<%s>\n%s</%s>\n", tag, file ? file->text : "", tag);
}

static enum status put_page(struct page *page, struct error *err)
{
    page_raw(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Ridge report: ");
    page_text(page, grid_text(&page->runs, page->run_row, "host"));
    page_raw(page, ", %.10s</title>\n", grid_text(&page->runs, page->run_row, "started_utc"));
    put_embedded(page, "style", "plots/report.css");
    page_raw(page, "</head>\n<body>\n");
    section_head(page);
    page_raw(page, "<main>\n");
    section_alerts(page);
    section_glance(page);
    TRY(section_against(page, err));
    section_headline(page);
    TRY(section_overview(page, err));
    TRY(section_scaling(page, err));
    TRY(section_collectives(page, err));
    for (int64_t row = 0; row < page->results.row_count; row++)
        TRY(section_workload(page, row, err));
    section_machine(page);
    section_unavailable(page);
    section_provenance(page);
    page_raw(page, "</main>\n");
    put_embedded(page, "script", "plots/report.js");
    page_raw(page, "</body>\n</html>\n");
    return STATUS_OK;
}

static enum status write_page(struct page *page, const char *file, struct error *err)
{
    struct output out;
    TRY(output_open(&out, file, OUTPUT_DERIVED, err));
    page->out = out.stream;
    return output_close(&out, put_page(page, err), err);
}

enum status report_write(struct store *store, int64_t run, const struct report_against *against,
                         const char *folder, struct report_outcome *outcome, struct error *err)
{
    char plots[512];
    *outcome = (struct report_outcome){.drawn = 0};
    struct page page = {
        .store = store, .run = run, .against = against, .folder = plots, .outcome = outcome};
    if (snprintf(plots, sizeof(plots), "%s/plots", folder) >= (int)sizeof(plots) ||
        snprintf(outcome->file, sizeof(outcome->file), "%s/index.html", folder) >=
            (int)sizeof(outcome->file))
        return FAIL(err, STATUS_FAILED, "%s: the path is too long", folder);
    TRY(folders_make(outcome->file, err));
    enum status status = read_grids(&page, err);
    if (status == STATUS_OK)
        status = read_base(&page, err);
    if (status == STATUS_OK)
        status = write_page(&page, outcome->file, err);
    for (int64_t row = 0; row < page.results.row_count; row++) {
        outcome->results++;
        outcome->not_valid += strcmp(grid_text(&page.results, row, "status"), "ok") != 0 ||
                              strcmp(grid_text(&page.results, row, "verdict"), "valid") != 0;
    }
    release(&page);
    return status;
}
