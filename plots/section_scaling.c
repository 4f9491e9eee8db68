/* SPDX-License-Identifier: Apache-2.0
 *
 * How the rate of a training grows with its ranks: what `ridge scale --db`, or points of a
 * suite with ranks, left of this machine. Nothing where they left nothing. */
#include <math.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static void put_point(struct page *page, const struct grid *g, int64_t row)
{
    double step = grid_number(g, row, "step"), exposed = grid_number(g, row, "exposed");
    double moving = grid_number(g, row, "communication"), ranks = grid_number(g, row, "ranks");
    page_raw(page, "<tr>");
    page_cell(page, "Training", grid_text(g, row, "label"));
    page_number(page, "Ranks", ranks, grid_text(g, row, "ranks"));
    page_number(page, "Step", step, text_time(step).s);
    page_number(page, "Samples/s", grid_number(g, row, "throughput"),
                text_number(grid_number(g, row, "throughput")).s);
    page_number(page, "Of ideal", grid_number(g, row, "efficiency"),
                text_percent(grid_number(g, row, "efficiency")).s);
    page_number(page, "Moving", moving, ranks > 1 ? text_time(moving).s : "\xe2\x80\x93");
    page_number(page, "Exposed", exposed, ranks > 1 ? text_time(exposed).s : "\xe2\x80\x93");
    page_number(page, "Sent", grid_number(g, row, "sent"),
                ranks > 1 ? text_scaled(grid_number(g, row, "sent"), "B").s : "\xe2\x80\x93");
    page_number(page, "Kept", grid_number(g, row, "kept"),
                text_scaled(grid_number(g, row, "kept"), "B").s);
    page_cell(page, "", grid_text(g, row, "reason"));
    page_raw(page, "</tr>\n");
}

enum status section_scaling(struct page *page, struct error *err)
{
    static const char *const titles[] = {"Training", "#Ranks",   "#Step", "#Samples/s", "#Of ideal",
                                         "#Moving",  "#Exposed", "#Sent", "#Kept",      ""};
    struct grid grid;
    struct query_value run = {.name = "run", .number = (double)page->run};
    TRY(query_view(page->store, "report_scaling", &run, 1, &grid, err));
    enum status status = STATUS_OK;
    if (grid.row_count) {
        page_raw(page, "<section id=\"scaling\">\n<h2>Ranks that learn together</h2>\n");
        status = page_figure(page, "scaling", 0, err);
        page_begin_table(page, "", titles, ARRAY_COUNT(titles));
        for (int64_t row = 0; row < grid.row_count; row++)
            put_point(page, &grid, row);
        page_end_table(page);
        page_raw(page, "</section>\n");
    }
    grid_release(&grid);
    return status;
}
