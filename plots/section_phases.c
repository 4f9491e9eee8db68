/* SPDX-License-Identifier: Apache-2.0
 *
 * How a step of training divides into forward, backward and update, and what each leaves in memory:
 * activations, gradients, states. Nothing for an inference. */
#include <math.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static void put_phase(struct page *page, const struct grid *g, int64_t row, double all)
{
    double time = grid_number(g, row, "time"), flops = grid_number(g, row, "flops");
    double bytes = grid_number(g, row, "bytes");
    page_raw(page, "<tr>");
    page_cell(page, "Phase", grid_text(g, row, "phase"));
    page_number(page, "Time", time, text_time(time).s);
    page_number(page, "Share", time / all, text_percent(time / all).s);
    page_number(page, "Performance", flops / time, text_scaled(flops / time, "FLOP/s").s);
    page_number(page, "Streamed", bytes / time, text_scaled(bytes / time, "B/s").s);
    double left = grid_number(g, row, "left");
    page_number(page, "Leaves", left, text_scaled(left, "B").s);
    page_raw(page, "</tr>\n");
}

enum status section_phases(struct page *page, int64_t result, struct error *err)
{
    static const char *const titles[] = {"Phase",        "#Time",     "#Share",
                                         "#Performance", "#Streamed", "#Leaves"};
    struct grid grid;
    struct query_value value = {.name = "result", .number = (double)result};
    TRY(query_view(page->store, "report_phases", &value, 1, &grid, err));
    double all = 0;
    for (int64_t row = 0; row < grid.row_count; row++)
        all += grid_number(&grid, row, "time");
    if (all > 0) {
        page_raw(page, "<h4>Phases of a step</h4>\n");
        page_begin_table(page, "", titles, ARRAY_COUNT(titles));
        for (int64_t row = 0; row < grid.row_count; row++)
            put_phase(page, &grid, row, all);
        page_end_table(page);
    }
    grid_release(&grid);
    return STATUS_OK;
}
