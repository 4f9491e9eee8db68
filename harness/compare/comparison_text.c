/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison for people: a table in a terminal, Markdown in the summary of a CI job. */
#include <string.h>

#include "base/clean.h"
#include "base/registry.h"
#include "base/text/markdown.h"
#include "base/text/table.h"
#include "harness/compare/comparison_print.h"

enum { VALUE_SHOWN = 60 };

static const char *shortened(const char *value, char text[VALUE_SHOWN + 4])
{
    if (strlen(value) <= VALUE_SHOWN)
        return *value ? value : "(none)";
    snprintf(text, VALUE_SHOWN + 1, "%.*s", VALUE_SHOWN, value);
    memcpy(text + clean_end(text), "...", 4);
    return text;
}

/* ---- text ---- */

static void text_runs(const struct run_list *list, const char *side, FILE *stream)
{
    for (int k = 0; k < list->count; k++) {
        const struct run_ref *run = &list->runs[k];
        fprintf(stream, "%-4s %s  %s  %s  %s%s%s\n", side, run->uuid, run->started, run->git,
                run->host, *run->tag ? "  " : "", run->tag);
    }
}

static void text_rows(const char *title, const struct difference *all, size_t count, FILE *stream)
{
    struct table t = {.column_count = 0};
    table_column(&t, title, TABLE_LEFT);
    table_column(&t, "BASE", TABLE_LEFT);
    table_column(&t, "HEAD", TABLE_LEFT);
    for (size_t k = 0; k < count; k++) {
        char base[VALUE_SHOWN + 4], head[VALUE_SHOWN + 4];
        table_cell(&t, "%s", all[k].what);
        table_cell(&t, "%s", shortened(all[k].base, base));
        table_cell(&t, "%s", shortened(all[k].head, head));
    }
    fputc('\n', stream);
    table_print(&t, stream);
    table_release(&t);
}

static void text_differences(const struct comparison_set *set, FILE *stream)
{
    text_rows("Around the runs", set->around, set->around_count, stream);
    if (set->difference_count)
        text_rows("differs", set->differences, set->difference_count, stream);
    else
        fprintf(stream, "\nEnvironment: no difference.\n");
    fprintf(stream, "%c%s.\n\n", set->attribution[0] == 't' ? 'T' : set->attribution[0],
            set->attribution + 1);
}

static void text_row(struct table *t, const struct comparison_cells *cells)
{
    table_cell(t, "%s", cells->verdict);
    table_cell(t, "%s", cells->point);
    table_cell(t, "%s", cells->base);
    table_cell(t, "%s", cells->head);
    table_cell(t, "%s", cells->change);
    table_cell(t, "%s", cells->interval);
    table_cell(t, "%s", cells->detectable);
}

static void text_table(const struct comparison_set *set, FILE *stream)
{
    struct table t = {.column_count = 0};
    struct comparison_cells cells;
    table_column(&t, "verdict", TABLE_LEFT);
    table_column(&t, "point", TABLE_LEFT);
    table_column(&t, "BASE", TABLE_RIGHT);
    table_column(&t, "HEAD", TABLE_RIGHT);
    table_column(&t, "change", TABLE_RIGHT);
    table_column(&t, "99 % interval", TABLE_RIGHT);
    table_column(&t, "detectable", TABLE_RIGHT);
    for (size_t k = 0; k < set->count; k++) {
        size_t point = comparison_ordered(set, k);
        comparison_cells_time(&cells, set, point);
        text_row(&t, &cells);
        if (comparison_cells_rate(&cells, set, point))
            text_row(&t, &cells);
    }
    table_print(&t, stream);
    table_release(&t);
}

static void text_reasons(const struct comparison_set *set, FILE *stream)
{
    for (size_t k = 0; k < set->count; k++) {
        size_t point = comparison_ordered(set, k);
        const struct comparison *c = &set->verdicts[point];
        const struct compared_point *p = &set->points[point];
        if (c->verdict == VERDICT_UNCHANGED)
            continue;
        fprintf(stream, "%s: %s: %s\n", p->label, verdict_name(c->verdict), c->reason);
        if (*p->cause)
            fprintf(stream, "    %s\n", p->cause);
    }
}

/* What counts as BASE, where that is more than the named runs. */
static void text_history(const struct comparison_set *set, FILE *stream)
{
    int runs_min = 0, runs_max = 0;
    for (size_t k = 0; k < set->count; k++) {
        int runs = set->verdicts[k].history_runs;
        if (runs > 0)
            runs_min = runs_min == 0 || runs < runs_min ? runs : runs_min;
        runs_max = runs > runs_max ? runs : runs_max;
    }
    if (runs_min < runs_max)
        fprintf(stream, "BASE counts with %d to %d earlier runs of its program here.\n", runs_min,
                runs_max);
    else if (runs_max)
        fprintf(stream, "BASE counts with %d earlier run%s of its program here.\n", runs_max,
                runs_max == 1 ? "" : "s");
}

static bool has_unjudged(const struct comparison_set *set)
{
    for (size_t k = 0; k < set->count; k++)
        if (set->points[k].rate.name && !set->points[k].rate.judged)
            return true;
    return false;
}

void comparison_write_text(const struct comparison_set *set, FILE *stream)
{
    char totals[256];
    text_runs(&set->base, "BASE", stream);
    text_runs(&set->head, "HEAD", stream);
    text_differences(set, stream);
    text_table(set, stream);
    text_history(set, stream);
    fputc('\n', stream);
    text_reasons(set, stream);
    if (has_unjudged(set))
        fputs("A server rate is the result of one search per run, in steps of 2 %: it has no "
              "samples to judge by.\n",
              stream);
    comparison_totals(set, totals, sizeof(totals));
    fprintf(stream, "%zu point%s: %s.\n", set->count, set->count == 1 ? "" : "s", totals);
}

/* ---- Markdown ---- */

static void markdown_cells(FILE *stream, const char *const *cells, int count)
{
    for (int k = 0; k < count; k++) {
        fputs("| ", stream);
        markdown_text(cells[k], stream);
        fputc(' ', stream);
    }
    fputs("|\n", stream);
}

static void markdown_row(const struct comparison_cells *cells, const char *why, FILE *stream)
{
    const char *texts[] = {cells->verdict, cells->point,    cells->base,       cells->head,
                           cells->change,  cells->interval, cells->detectable, why};
    markdown_cells(stream, texts, ARRAY_COUNT(texts));
}

static void markdown_rows(const char *title, const struct difference *all, size_t count,
                          FILE *stream)
{
    fprintf(stream, "| %s | BASE | HEAD |\n|---|---|---|\n", title);
    for (size_t k = 0; k < count; k++) {
        char base[VALUE_SHOWN + 4], head[VALUE_SHOWN + 4];
        const char *cells[] = {all[k].what, shortened(all[k].base, base),
                               shortened(all[k].head, head)};
        markdown_cells(stream, cells, ARRAY_COUNT(cells));
    }
    fputc('\n', stream);
}

void comparison_write_markdown(const struct comparison_set *set, FILE *stream)
{
    char totals[256];
    comparison_totals(set, totals, sizeof(totals));
    fprintf(stream, "### ridge compare: %s\n\n", totals);
    fprintf(stream, "BASE `%s` (%s), HEAD `%s` (%s): %s.\n\n", set->base.runs[0].uuid,
            set->base.runs[0].git, set->head.runs[0].uuid, set->head.runs[0].git, set->attribution);
    markdown_rows("around the runs", set->around, set->around_count, stream);
    if (set->difference_count)
        markdown_rows("differs", set->differences, set->difference_count, stream);
    fputs("| verdict | point | BASE | HEAD | change | 99 % interval | detectable | why |\n"
          "|---|---|---:|---:|---:|---:|---:|---|\n",
          stream);
    for (size_t k = 0; k < set->count; k++) {
        struct comparison_cells cells;
        size_t point = comparison_ordered(set, k);
        const char *cause = set->points[point].cause;
        comparison_cells_time(&cells, set, point);
        markdown_row(&cells, *cause ? cause : set->verdicts[point].reason, stream);
        if (comparison_cells_rate(&cells, set, point))
            markdown_row(&cells, set->points[point].rate.judged ? "as its time" : "one search",
                         stream);
    }
}
