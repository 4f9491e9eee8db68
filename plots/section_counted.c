/* SPDX-License-Identifier: Apache-2.0
 *
 * What the hardware counted, step by step: operations over the model's, bytes of memory, and the
 * intensity over bytes read and written and, as the AI Matrix paper has it, over bytes read alone.
 * Nothing where no profiler looked at the steps. */
#include <math.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static bool is_counted(const struct grid *g, int64_t row)
{
    return isfinite(grid_number(g, row, "flops_counted")) ||
           isfinite(grid_number(g, row, "dram_read"));
}

static void put_ratio(struct page *page, const char *label, double over, double under)
{
    double ratio = under > 0 ? over / under : NAN;
    page_number(page, label, ratio, text_number(ratio).s);
}

static void put_step(struct page *page, const struct grid *g, int64_t row)
{
    double flops = grid_number(g, row, "flops"), counted = grid_number(g, row, "flops_counted");
    double read = grid_number(g, row, "dram_read"), written = grid_number(g, row, "dram_write");
    page_raw(
        page,
        "<tr><td data-label=\"Step\" data-sort=\"%lld\" class=\"step\"><strong>#%lld</strong> ",
        (long long)row, (long long)row);
    page_text(page, grid_text(g, row, "kind"));
    page_element(page, "small", grid_text(g, row, "name"));
    page_raw(page, "</td>");
    page_cell(page, "Kernel", grid_text(g, row, "kernel"));
    page_number(page, "Model", flops, text_scaled(flops, "FLOP").s);
    page_number(page, "Counted", counted, text_scaled(counted, "FLOP").s);
    put_ratio(page, "Executed", counted, flops);
    page_number(page, "Read", read, text_bytes(read).s);
    page_number(page, "Written", written, text_bytes(written).s);
    put_ratio(page, "FLOP/B", flops, read + written);
    put_ratio(page, "FLOP/B read", flops, read);
    page_raw(page, "</tr>\n");
}

static void put_steps(struct page *page, const struct grid *g)
{
    static const char *const titles[] = {"Step",  "Kernel",   "#Model",  "#Counted",    "#Executed",
                                         "#Read", "#Written", "#FLOP/B", "#FLOP/B read"};
    page_raw(page, "<details><summary>Counted step by step</summary>\n");
    page_begin_table(page, "sortable wide", titles, ARRAY_COUNT(titles));
    for (int64_t row = 0; row < g->row_count; row++)
        if (is_counted(g, row))
            put_step(page, g, row);
    page_end_table(page);
    page_raw(page, "<p class=\"note\">Executed: operations that the hardware counted over the "
                   "model's. Padding, masked lanes and recomputation move it above 1, Winograd's "
                   "algorithm below. FLOP/B: the model's operations over the DRAM traffic that was "
                   "counted.</p></details>\n");
}

enum status section_counted(struct page *page, int64_t result, struct error *err)
{
    struct grid grid;
    struct query_value value = {.name = "result", .number = (double)result};
    TRY(query_view(page->store, "ops", &value, 1, &grid, err));
    bool any = false;
    for (int64_t row = 0; row < grid.row_count; row++)
        any = any || is_counted(&grid, row);
    if (any)
        put_steps(page, &grid);
    grid_release(&grid);
    return STATUS_OK;
}
