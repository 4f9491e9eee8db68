/* SPDX-License-Identifier: Apache-2.0
 *
 * Two runs beside each other: what differs around them, the roofline of both, a row per point with
 * the verdict of the comparison. The share of its own machine's roof is what two machines can be
 * compared by: a larger one may be faster and yet use less of what it has. */
#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"
#include "plots/text.h"

static void put_run(struct page *page, const char *side, const struct grid *runs, int64_t row)
{
    page_raw(page, "<div><dt>%s</dt><dd>", side);
    page_text(page, grid_text(runs, row, "host"));
    page_raw(page, ", %.16s UTC<br>run %.8s, commit ", grid_text(runs, row, "started_utc"),
             grid_text(runs, row, "uuid"));
    page_text(page, grid_text(runs, row, "git"));
    if (*grid_text(runs, row, "tag")) {
        page_raw(page, ", ");
        page_text(page, grid_text(runs, row, "tag"));
    }
    page_raw(page, "</dd></div>\n");
}

static void put_rows(struct page *page, const char *what, const char *(*rows)[3], int count)
{
    const char *const titles[] = {what, "BASE", "HEAD"};
    if (!count)
        return;
    page_begin_table(page, "", titles, ARRAY_COUNT(titles));
    for (int k = 0; k < count; k++) {
        page_raw(page, "<tr>");
        for (int i = 0; i < ARRAY_COUNT(titles); i++)
            page_cell(page, titles[i], *rows[k][i] ? rows[k][i] : "(none)");
        page_raw(page, "</tr>\n");
    }
    page_end_table(page);
}

static void put_differences(struct page *page)
{
    const struct report_against *a = page->against;
    put_rows(page, "Around the runs", a->around, a->around_count);
    put_rows(page, "Differs", a->differences, a->difference_count);
    page_raw(page, "<p class=\"note\">%s", a->difference_count ? "" : "No other difference. ");
    page_text(page, a->attribution);
    page_raw(page, ".</p>\n");
}

/* ---- the table ---- */

/* Words of `ridge compare`, their colours and what they say; in the order of its list. */
struct verdict_word {
    const char *verdict, *chip, *meaning;
};

static const struct verdict_word verdict_words[] = {
    {"regressed", "bad", "slower by more than the limit, and not by chance"},
    {"improved", "good", "faster by more than the limit, and not by chance"},
    {"unchanged", "good", "a change that would matter is excluded"},
    {"inconclusive", "warn", "the noise hides whether there is a change"},
    {"machine", "machine",
     "the machine itself moved as the point did: nothing is said of the program"},
    {"invalid", "warn", "one side has no numbers to be trusted"},
    {"failed", "bad", "failed, or computed wrong numbers, where BASE did not"},
    {"missing", "warn", "measured in BASE alone"},
    {"new", "warn", "measured in HEAD alone"},
    {"not judged", "warn", "shown, but of no consequence for the comparison"},
};

static const char *chip(const char *verdict)
{
    for (int k = 0; k < ARRAY_COUNT(verdict_words); k++)
        if (strcmp(verdict, verdict_words[k].verdict) == 0)
            return verdict_words[k].chip;
    return "warn";
}

/* Only the words that stand in the table. */
static void put_legend(struct page *page)
{
    const struct report_against *a = page->against;
    page_raw(page, "<ul class=\"legend\">\n");
    for (int w = 0; w < ARRAY_COUNT(verdict_words); w++) {
        const struct verdict_word *word = &verdict_words[w];
        bool used = false;
        for (int k = 0; k < a->change_count && !used; k++)
            used = strcmp(a->changes[k].verdict, word->verdict) == 0 ||
                   (a->changes[k].rate && strcmp(a->changes[k].rate_verdict, word->verdict) == 0);
        if (used)
            page_raw(page, "<li><span class=\"chip %s\">%s</span> %s</li>\n", word->chip,
                     word->verdict, word->meaning);
    }
    page_raw(page, "</ul>\n");
}

static void put_verdict(struct page *page, const char *verdict, const char *why)
{
    page_raw(page, "<td data-label=\"Verdict\" class=\"reason\"><span class=\"chip %s\">",
             chip(verdict));
    page_text(page, verdict);
    page_raw(page, "</span>");
    if (*why)
        page_element(page, "small", why);
    page_raw(page, "</td></tr>\n");
}

static struct short_text change_text(double ratio)
{
    struct short_text text = {"\xe2\x80\x93"};
    if (isfinite(ratio))
        snprintf(text.s, sizeof(text.s), "%+.1f %%", 100 * (ratio - 1));
    return text;
}

static void put_change(struct page *page, double ratio, double low, double high)
{
    page_raw(page, "<td class=\"num\" data-label=\"Change\" data-sort=\"%s\"><strong>%s</strong>",
             page_sort_key(ratio).s, change_text(ratio).s);
    if (isfinite(low))
        page_raw(page, "<small>%s to %s</small>", change_text(low).s, change_text(high).s);
    page_raw(page, "</td>");
}

static double roof_share(const struct grid *bounds, const char *key)
{
    for (int64_t row = 0; row < bounds->row_count; row++)
        if (strcmp(grid_text(bounds, row, "key"), key) == 0)
            return grid_number(bounds, row, "fraction_of_roof");
    return NAN;
}

static void put_time(struct page *page, const struct report_change *c, int index)
{
    double base = roof_share(&page->base_bounds, c->key), head = roof_share(&page->bounds, c->key);
    page_raw(page, "<tr id=\"c%d\"><th scope=\"row\">", index);
    page_text(page, c->label);
    page_raw(page, "<small>time</small></th>");
    page_number(page, "BASE", c->base_s, text_time(c->base_s).s);
    page_number(page, "HEAD", c->head_s, text_time(c->head_s).s);
    put_change(page, c->ratio, c->ci_low, c->ci_high);
    page_raw(page,
             "<td class=\"num\" data-label=\"Of its roof\" data-sort=\"%s\">%s \xe2\x86\x92 "
             "%s</td>",
             page_sort_key(head).s, text_percent(base).s, text_percent(head).s);
    put_verdict(page, c->verdict, c->why);
}

static void put_rate(struct page *page, const struct report_change *c)
{
    if (!c->rate)
        return;
    page_raw(page, "<tr><th scope=\"row\">");
    page_text(page, c->label);
    page_raw(page, "<small>%s, more is better</small></th>", c->rate);
    page_number(page, "BASE", c->base_rate, text_scaled(c->base_rate, "/s").s);
    page_number(page, "HEAD", c->head_rate, text_scaled(c->head_rate, "/s").s);
    put_change(page, c->rate_ratio, NAN, NAN);
    page_number(page, "Of its roof", NAN, "");
    put_verdict(page, c->rate_verdict, "");
}

enum status section_against(struct page *page, struct error *err)
{
    static const char *const titles[] = {"Point",   "#BASE",        "#HEAD",
                                         "#Change", "#Of its roof", "Verdict"};
    const struct report_against *a = page->against;
    if (!a)
        return STATUS_OK;
    page_raw(page,
             "<section id=\"against\"><h2>Against another run</h2>\n<p class=\"lead\"><strong>");
    page_text(page, a->totals);
    page_raw(page, "</strong></p>\n<dl class=\"facts\">\n");
    put_run(page, "BASE", &page->base_runs, page->base_run_row);
    put_run(page, "HEAD, the run of this page", &page->runs, page->run_row);
    page_raw(page, "</dl>\n");
    put_differences(page);
    TRY(page_figure(page, "roofline_against", 0, err));
    page_begin_table(page, "headline sortable", titles, ARRAY_COUNT(titles));
    for (int k = 0; k < a->change_count; k++) {
        put_time(page, &a->changes[k], k);
        put_rate(page, &a->changes[k]);
    }
    page_end_table(page);
    put_legend(page);
    page_raw(
        page,
        "<p class=\"note\">Change of the median time with its 99 %% interval. Of its roof: the "
        "least time that its own machine allows, over the median time. How verdicts are "
        "made: <code>ridge compare -h</code>.</p></section>\n");
    return STATUS_OK;
}
