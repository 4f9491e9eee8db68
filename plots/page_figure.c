/* SPDX-License-Identifier: Apache-2.0
 *
 * Plots inside the page, and what of them can be pointed at: over each marker of a roofline is an
 * invisible circle with the numbers of its point, and a link to its row where the page has one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/page.h"
#include "plots/plot.h"
#include "plots/svg.h"
#include "plots/text.h"

struct picture {
    const struct plot *plot;
    const struct plot_outcome *outcome;
    const char *stem;
    int64_t result; /* 0: of the whole run */
    bool narrow;
};

/* ---- markers ---- */

/* Where a step is among the rows of its result, -1 when it is not. */
static int find_step(const struct page *page, const int64_t *rows, int count, int64_t step)
{
    for (int k = 0; k < count; k++)
        if ((int64_t)grid_number(&page->offenders, rows[k], "step") == step)
            return k;
    return -1;
}

/* The id of the row that shows a mark; "" when the page shows none. */
static struct short_text row_of_step(const struct page *page, int64_t result, int64_t step)
{
    struct short_text name = {""};
    int count;
    const int64_t *rows = page_steps(page, result, &count);
    int k = find_step(page, rows, count, step);
    if (k >= 0 && page_shows_step(page, rows, k))
        snprintf(name.s, sizeof(name.s), "s%lld-%lld", (long long)result, (long long)step);
    return name;
}

static struct short_text row_of_result(const struct page *page, const struct plot *plot, int64_t id)
{
    struct short_text name = {""};
    int64_t row = page_find(&page->results, id);
    if (row < 0)
        return name;
    snprintf(name.s, sizeof(name.s), "p%lld", (long long)id);
    const char *key = grid_text(&page->results, row, "key");
    if (plot->of_base)
        for (int k = 0; k < page->against->change_count; k++)
            if (strcmp(page->against->changes[k].key, key) == 0)
                snprintf(name.s, sizeof(name.s), "c%d", k);
    return name;
}

static void put_roof(FILE *out, const struct grid *grid, int64_t row)
{
    double share = row < 0 ? NAN : grid_number(grid, row, "fraction_of_roof");
    if (!isfinite(share)) {
        fputs("\nits roof is not known", out);
        return;
    }
    fprintf(out, "\n%s of its roof, bound by ", text_percent(share).s);
    text_html(out, grid_text(grid, row, "bound"));
}

static void put_result_title(const struct page *page, int64_t result, bool all, FILE *out)
{
    const struct grid *g = &page->results;
    int64_t row = page_find(g, result), bound = page_find(&page->bounds, result);
    if (row < 0)
        return;
    text_html(out, grid_text(g, row, "spec"));
    fprintf(out, ", batch %.0f", grid_number(g, row, "batch"));
    if (!all)
        return;
    put_roof(out, &page->bounds, bound);
    bool valid = page_is_valid(g, row);
    fputs(valid ? "\nvalid" : "\nnot valid: ", out);
    text_html(out, valid ? "" : grid_text(g, row, "reason"));
}

static void put_step_title(const struct page *page, int64_t result, int64_t step, bool all,
                           FILE *out)
{
    const struct grid *g = &page->offenders;
    int count;
    const int64_t *rows = page_steps(page, result, &count);
    int k = find_step(page, rows, count, step);
    fprintf(out, "step #%lld ", (long long)step);
    if (k < 0 || !all)
        return;
    int64_t row = rows[k];
    text_html(out, grid_text(g, row, "kind"));
    fputs(", ", out);
    text_html(out, grid_text(g, row, "kernel"));
    fprintf(out, "\n%s", text_time(grid_number(g, row, "time")).s);
    put_roof(out, g, row);
}

/* The numbers of a point: where there is a pointer to hover with, else its name alone. */
static void put_numbers(const struct page *page, int64_t result, const struct figure_mark *mark,
                        bool all, FILE *out)
{
    if (result)
        put_step_title(page, result, mark->id, all, out);
    else
        put_result_title(page, mark->id, all, out);
    if (all)
        fprintf(out, "\n%s at %s FLOP/B", text_scaled(mark->y_value, "FLOP/s").s,
                text_number(mark->x_value).s);
}

static void put_mark(const struct page *page, const struct picture *picture,
                     const struct figure_mark *mark, FILE *out)
{
    int64_t result = picture->outcome->marks_steps ? picture->result : 0;
    struct short_text row =
        result ? row_of_step(page, result, mark->id) : row_of_result(page, picture->plot, mark->id);
    if (*row.s)
        fprintf(out, "<a class=\"hit\" href=\"#%s\" data-row=\"%s\"><title>", row.s, row.s);
    else
        fputs("<g class=\"hit\"><title>", out);
    put_numbers(page, result, mark, !picture->narrow, out);
    fprintf(out, "</title><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>%s\n", mark->x, mark->y,
            mark->radius, *row.s ? "</a>" : "</g>");
}

/* Marks of a plot as SVG, "" when there are none; the caller frees it. */
static enum status make_over(const struct page *page, const struct picture *picture, char **over,
                             struct error *err)
{
    size_t size = 0;
    FILE *out = open_memstream(over, &size);
    if (!out)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < picture->outcome->mark_count; k++)
        put_mark(page, picture, &picture->outcome->marks[k], out);
    return fclose(out) == 0 ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- figures ---- */

enum { NARROW_PX = 360 };

/* One picture for wide windows and one for narrow ones; the style sheet shows one of them. */
static enum status put_picture(struct page *page, const struct picture *picture, struct error *err)
{
    char file[512], *over = NULL;
    snprintf(file, sizeof(file), "%s/%s.svg", page->folder, picture->stem);
    page_raw(page, "<div class=\"%s\">", picture->narrow ? "narrow" : "wide");
    enum status status = make_over(page, picture, &over, err);
    struct svg_words words = {picture->stem, picture->plot->title, picture->plot->about, over};
    if (status == STATUS_OK)
        status = svg_inline(file, &words, page->out, err);
    free(over);
    page_raw(page, "</div>");
    return status;
}

static void put_caption(struct page *page, const struct plot *plot, const char *stem,
                        const struct plot_outcome *outcome)
{
    page_raw(page, "<figcaption>");
    page_text(page, plot->about);
    if (outcome->mark_count)
        page_raw(page, " Point at a marker to see its numbers; a click leads to its row.");
    if (outcome->unnamed)
        page_raw(page, " %d points have no name here for want of room.", outcome->unnamed);
    page_raw(page,
             " <span class=\"files\"><a href=\"plots/%s.svg\">svg</a> "
             "<a href=\"plots/%s.dat\">data</a> <a href=\"plots/%s.gp\">gnuplot</a></span>",
             stem, stem, stem);
    page_raw(page, "</figcaption></figure>\n");
}

/* A plot with nothing to draw says so in its place, but is not among those that are missing. */
static void put_missing(struct page *page, const char *name, const struct plot_outcome *outcome)
{
    struct report_outcome *o = page->outcome;
    if (!outcome->empty && o->not_drawn++ == 0)
        snprintf(o->plot_reason, sizeof(o->plot_reason), "%s", outcome->reason);
    page_raw(page, "<p class=\"missing\">No picture here (%s): ", name);
    page_text(page, outcome->reason);
    page_raw(page, "</p>\n");
}

/* Wide, and narrow where that could be drawn too. */
static enum status put_figure(struct page *page, const struct plot *plot,
                              const struct plot_request *requests,
                              const struct plot_outcome *outcomes, struct error *err)
{
    struct picture wide = {plot, &outcomes[0], requests[0].stem, requests[0].result, false};
    struct picture phone = {plot, &outcomes[1], requests[1].stem, requests[1].result, true};
    page->outcome->drawn++;
    page_raw(page, "<figure class=\"plot\">");
    TRY(put_picture(page, &wide, err));
    if (outcomes[1].drawn)
        TRY(put_picture(page, &phone, err));
    put_caption(page, plot, requests[0].stem, &outcomes[0]);
    return STATUS_OK;
}

enum status page_figure(struct page *page, const char *name, int64_t result, struct error *err)
{
    struct plot plot;
    struct plot_outcome outcomes[2];
    char stem[80], narrow[96];
    if (result && !page_is_pictured(page, result))
        return STATUS_OK;
    if (result)
        snprintf(stem, sizeof(stem), "%s_%lld", name, (long long)result);
    else
        snprintf(stem, sizeof(stem), "%s", name);
    snprintf(narrow, sizeof(narrow), "%s_narrow", stem);
    struct plot_request requests[2] = {{.name = name,
                                        .run = page->run,
                                        .result = result,
                                        .base = page->against ? page->against->store : NULL,
                                        .base_run = page->against ? page->against->run : 0,
                                        .folder = page->folder,
                                        .stem = stem,
                                        .kind = "svg",
                                        .gnuplot_hangs = page->outcome->gnuplot_hangs}};
    requests[1] = requests[0];
    requests[1].stem = narrow;
    requests[1].width = NARROW_PX;
    TRY(plot_find(name, &plot, err));
    enum status status = plot_draw(page->store, requests, 2, outcomes, err);
    for (int k = 0; k < 2; k++)
        page->outcome->gnuplot_hangs = page->outcome->gnuplot_hangs || outcomes[k].gnuplot_hangs;
    if (status == STATUS_OK && outcomes[0].drawn)
        status = put_figure(page, &plot, requests, outcomes, err);
    else if (status == STATUS_OK)
        put_missing(page, name, &outcomes[0]);
    for (int k = 0; k < 2; k++)
        plot_outcome_release(&outcomes[k]);
    return status;
}
