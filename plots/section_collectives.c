/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations between ranks: what `ridge bench collectives --db` left of this machine. Nothing where
 * it left nothing. */
#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static void put_row(struct page *page, const struct grid *g, int64_t row)
{
    double ranks = grid_number(g, row, "ranks"), bytes = grid_number(g, row, "bytes");
    double time = grid_number(g, row, "time"), rate = grid_number(g, row, "bus_rate");
    page_raw(page, "<tr>");
    page_cell(page, "Operation", grid_text(g, row, "operation"));
    page_cell(page, "Backend", grid_text(g, row, "backend"));
    page_cell(page, "Algorithm", grid_text(g, row, "algorithm"));
    page_cell(page, "Place", grid_text(g, row, "place"));
    page_number(page, "Ranks", ranks, grid_text(g, row, "ranks"));
    page_number(page, "Bytes", bytes, text_bytes(bytes).s);
    page_number(page, "Time", time, text_time(time).s);
    page_number(page, "Bus bandwidth", rate, text_scaled(rate, "B/s").s);
    page_number(page, "Of roof", grid_number(g, row, "of_roof"),
                text_percent(grid_number(g, row, "of_roof")).s);
    page_cell(page, "", grid_text(g, row, "reason"));
    page_raw(page, "</tr>\n");
}

static void put_model(struct page *page, const struct grid *g, int64_t row)
{
    double residual = grid_number(g, row, "residual");
    page_raw(page, "<tr>");
    page_cell(page, "Model of", grid_text(g, row, "label"));
    page_cell(page, "Costs", grid_text(g, row, "model"));
    page_number(page, "Residual", residual, text_percent(residual).s);
    page_raw(page, "</tr>\n");
}

static bool ends_series(const struct grid *g, int64_t row)
{
    return row + 1 == g->row_count ||
           strcmp(grid_text(g, row, "series"), grid_text(g, row + 1, "series")) != 0;
}

static enum status put_section(struct page *page, const struct grid *g, struct error *err)
{
    static const char *const titles[] = {"Operation", "Backend", "Algorithm", "Place",
                                         "#Ranks",    "#Bytes",  "#Time",     "#Bus bandwidth",
                                         "#Of roof",  ""};
    static const char *const fits[] = {"Model of", "Costs", "#Residual"};
    page_raw(page, "<section id=\"collectives\">\n<h2>Operations between ranks</h2>\n");
    TRY(page_figure(page, "collective_rates", 0, err));
    TRY(page_figure(page, "collective_times", 0, err));
    page_begin_table(page, "", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < g->row_count; row++)
        if (grid_number(g, row, "shown") != 0)
            put_row(page, g, row);
    page_end_table(page);
    page_begin_table(page, "", fits, ARRAY_COUNT(fits));
    for (int64_t row = 0; row < g->row_count; row++)
        if (ends_series(g, row) && isfinite(grid_number(g, row, "residual")))
            put_model(page, g, row);
    page_end_table(page);
    page_raw(page, "</section>\n");
    return STATUS_OK;
}

enum status section_collectives(struct page *page, struct error *err)
{
    struct grid grid;
    struct query_value run = {.name = "run", .number = (double)page->run};
    TRY(query_view(page->store, "report_collectives", &run, 1, &grid, err));
    enum status status = grid.row_count ? put_section(page, &grid, err) : STATUS_OK;
    grid_release(&grid);
    return status;
}
