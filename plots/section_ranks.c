/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks that learn together did in a step, and when each of their exchanges took place.
 * Nothing for a result of one process. */
#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static void put_lead(struct page *page, const struct grid *g)
{
    double ranks = grid_number(g, 0, "ranks"), step = grid_number(g, 0, "step");
    double computing = grid_number(g, 0, "computing");
    if (ranks > 1)
        page_raw(page,
                 "<p class=\"lead\"><strong>Each of %.0f ranks computes for %s of a step of "
                 "%s.</strong> Gradients are under way for %s; the ranks stand still for them for "
                 "%s.",
                 ranks, text_time(computing).s, text_time(step).s,
                 text_time(grid_number(g, 0, "moving")).s,
                 text_time(grid_number(g, 0, "exposed")).s);
    else
        page_raw(page, "<p class=\"lead\">A single rank, whose steps take %s.", text_time(step).s);
    page_raw(page, " <a href=\"#scaling\">How the rate grows with ranks</a></p>\n");
}

/* Bytes are those of the rank with most. */
static void put_facts(struct page *page, const struct grid *g)
{
    page_raw(page, "<dl class=\"facts\">\n");
    if (grid_number(g, 0, "ranks") > 1) {
        page_term(page, "Sent in a step, at most by one rank",
                  text_scaled(grid_number(g, 0, "sent"), "B").s);
        page_term(page, "Messages for that", grid_text(g, 0, "messages"));
    }
    page_term(page, "Kept between steps, at most by one rank",
              text_scaled(grid_number(g, 0, "kept"), "B").s);
    page_term(page, "Waited for input in a step", text_time(grid_number(g, 0, "input")).s);
    page_raw(page, "</dl>\n");
}

enum status section_ranks(struct page *page, int64_t result, bool *found, struct error *err)
{
    struct grid grid;
    struct query_value value = {.name = "result", .number = (double)result};
    TRY(query_view(page->store, "report_ranks", &value, 1, &grid, err));
    enum status status = STATUS_OK;
    *found = grid.row_count > 0;
    if (*found) {
        put_lead(page, &grid);
        put_facts(page, &grid);
    }
    if (*found && grid_number(&grid, 0, "ranks") > 1)
        status = page_figure(page, "timeline", result, err);
    grid_release(&grid);
    return status;
}
