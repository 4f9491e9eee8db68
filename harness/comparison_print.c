/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as text for people, Markdown for summaries of CI jobs, JUnit XML for their lists of
 * tests, and JSON for programs. What differs around the runs always comes before any verdict. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/registry.h"
#include "base/table.h"
#include "harness/comparison.h"

enum { VALUE_SHOWN = 60 };

/* The order in which verdicts are listed: what needs a look first. */
static const enum verdict order[] = {VERDICT_REGRESSED, VERDICT_FAILED,       VERDICT_INVALID,
                                     VERDICT_MISSING,   VERDICT_INCONCLUSIVE, VERDICT_IMPROVED,
                                     VERDICT_NEW,       VERDICT_UNCHANGED};

static void seconds_text(double seconds, char text[24])
{
    if (isnan(seconds))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%.4g ms", 1e3 * seconds);
}

static void percent_text(double ratio, char text[24])
{
    if (isnan(ratio))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%+.1f %%", 100 * (ratio - 1));
}

static void interval_text(const struct comparison *c, char text[48])
{
    if (isnan(c->ci_low))
        snprintf(text, 48, "-");
    else
        snprintf(text, 48, "%+.1f .. %+.1f %%", 100 * (c->ci_low - 1), 100 * (c->ci_high - 1));
}

static void totals_text(const struct comparison_set *set, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int k = 0; k < ARRAY_COUNT(order) && used < size; k++)
        if (set->totals[order[k]])
            used += (size_t)snprintf(text + used, size - used, "%s%d %s", used ? ", " : "",
                                     set->totals[order[k]], verdict_name(order[k]));
}

static const char *shortened(const char *value, char text[VALUE_SHOWN + 4])
{
    if (strlen(value) <= VALUE_SHOWN)
        return *value ? value : "(none)";
    snprintf(text, VALUE_SHOWN + 4, "%.*s...", VALUE_SHOWN, value);
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

static void text_differences(const struct comparison_set *set, FILE *stream)
{
    if (!set->difference_count) {
        fprintf(stream, "\nEnvironment: no difference.\n");
    } else {
        struct table t = {.column_count = 0};
        table_column(&t, "differs", TABLE_LEFT);
        table_column(&t, "BASE", TABLE_LEFT);
        table_column(&t, "HEAD", TABLE_LEFT);
        for (size_t k = 0; k < set->difference_count; k++) {
            char base[VALUE_SHOWN + 4], head[VALUE_SHOWN + 4];
            table_cell(&t, "%s", set->differences[k].what);
            table_cell(&t, "%s", shortened(set->differences[k].base, base));
            table_cell(&t, "%s", shortened(set->differences[k].head, head));
        }
        fputc('\n', stream);
        table_print(&t, stream);
        table_release(&t);
    }
    fprintf(stream, "%c%s.\n\n", set->attribution[0] == 't' ? 'T' : set->attribution[0],
            set->attribution + 1);
}

static void text_row(struct table *t, const struct compared_point *point,
                     const struct comparison *c)
{
    char base[24], head[24], change[24], interval[48], mde[24];
    seconds_text(c->base_median, base);
    seconds_text(c->head_median, head);
    percent_text(c->ratio, change);
    interval_text(c, interval);
    percent_text(1 + c->mde, mde);
    table_cell(t, "%s", verdict_name(c->verdict));
    table_cell(t, "%s", point->label);
    table_cell(t, "%s", base);
    table_cell(t, "%s", head);
    table_cell(t, "%s", change);
    table_cell(t, "%s", interval);
    table_cell(t, "%s", mde);
}

static void text_reasons(const struct comparison_set *set, FILE *stream)
{
    for (int v = 0; v < ARRAY_COUNT(order); v++)
        for (size_t k = 0; k < set->count; k++) {
            const struct comparison *c = &set->verdicts[k];
            if (c->verdict != order[v] || c->verdict == VERDICT_UNCHANGED)
                continue;
            fprintf(stream, "%s: %s: %s\n", set->points[k].label, verdict_name(c->verdict),
                    c->reason);
            if (*set->points[k].cause)
                fprintf(stream, "    %s\n", set->points[k].cause);
        }
}

static void write_text(const struct comparison_set *set, FILE *stream)
{
    char totals[256];
    struct table t = {.column_count = 0};
    text_runs(&set->base, "BASE", stream);
    text_runs(&set->head, "HEAD", stream);
    text_differences(set, stream);
    table_column(&t, "verdict", TABLE_LEFT);
    table_column(&t, "point", TABLE_LEFT);
    table_column(&t, "BASE", TABLE_RIGHT);
    table_column(&t, "HEAD", TABLE_RIGHT);
    table_column(&t, "change", TABLE_RIGHT);
    table_column(&t, "99 % interval", TABLE_RIGHT);
    table_column(&t, "detectable", TABLE_RIGHT);
    for (int v = 0; v < ARRAY_COUNT(order); v++)
        for (size_t k = 0; k < set->count; k++)
            if (set->verdicts[k].verdict == order[v])
                text_row(&t, &set->points[k], &set->verdicts[k]);
    table_print(&t, stream);
    table_release(&t);
    fputc('\n', stream);
    text_reasons(set, stream);
    totals_text(set, totals, sizeof(totals));
    fprintf(stream, "%zu point%s: %s.\n", set->count, set->count == 1 ? "" : "s", totals);
}

/* ---- Markdown ---- */

static void markdown_text(const char *text, FILE *stream)
{
    for (; *text; text++) {
        if (strchr("|\\`*_<>[]", *text))
            fputc('\\', stream);
        fputc(*text == '\n' ? ' ' : *text, stream);
    }
}

static void markdown_cells(FILE *stream, const char *const *cells, int count)
{
    for (int k = 0; k < count; k++) {
        fputs("| ", stream);
        markdown_text(cells[k], stream);
        fputc(' ', stream);
    }
    fputs("|\n", stream);
}

static void markdown_row(const struct compared_point *point, const struct comparison *c,
                         FILE *stream)
{
    char base[24], head[24], change[24], interval[48], mde[24];
    seconds_text(c->base_median, base);
    seconds_text(c->head_median, head);
    percent_text(c->ratio, change);
    interval_text(c, interval);
    percent_text(1 + c->mde, mde);
    const char *cells[] = {verdict_name(c->verdict),
                           point->label,
                           base,
                           head,
                           change,
                           interval,
                           mde,
                           *point->cause ? point->cause : c->reason};
    markdown_cells(stream, cells, ARRAY_COUNT(cells));
}

static void write_markdown(const struct comparison_set *set, FILE *stream)
{
    char totals[256];
    totals_text(set, totals, sizeof(totals));
    fprintf(stream, "### ridge compare: %s\n\n", totals);
    fprintf(stream, "BASE `%s` (%s), HEAD `%s` (%s): %s.\n\n", set->base.runs[0].uuid,
            set->base.runs[0].git, set->head.runs[0].uuid, set->head.runs[0].git, set->attribution);
    if (set->difference_count) {
        fputs("| differs | BASE | HEAD |\n|---|---|---|\n", stream);
        for (size_t k = 0; k < set->difference_count; k++) {
            char base[VALUE_SHOWN + 4], head[VALUE_SHOWN + 4];
            const char *cells[] = {set->differences[k].what,
                                   shortened(set->differences[k].base, base),
                                   shortened(set->differences[k].head, head)};
            markdown_cells(stream, cells, ARRAY_COUNT(cells));
        }
        fputc('\n', stream);
    }
    fputs("| verdict | point | BASE | HEAD | change | 99 % interval | detectable | why |\n"
          "|---|---|---:|---:|---:|---:|---:|---|\n",
          stream);
    for (int v = 0; v < ARRAY_COUNT(order); v++)
        for (size_t k = 0; k < set->count; k++)
            if (set->verdicts[k].verdict == order[v])
                markdown_row(&set->points[k], &set->verdicts[k], stream);
}

/* ---- JUnit ---- */

static void xml_text(const char *text, FILE *stream)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", stream);
        else if (c == '<')
            fputs("&lt;", stream);
        else if (c == '>')
            fputs("&gt;", stream);
        else if (c == '"')
            fputs("&quot;", stream);
        else if (c >= 0x20 || c == '\n' || c == '\t') /* others are not allowed in XML 1.0 */
            fputc(c, stream);
    }
}

static void xml_child(const char *element, const struct compared_point *point,
                      const struct comparison *c, FILE *stream)
{
    char base[24], head[24], interval[48], mde[24];
    seconds_text(c->base_median, base);
    seconds_text(c->head_median, head);
    interval_text(c, interval);
    percent_text(1 + c->mde, mde);
    fprintf(stream, "    <%s message=\"", element);
    xml_text(verdict_name(c->verdict), stream);
    fputs(": ", stream);
    xml_text(c->reason, stream);
    if (strcmp(element, "failure") == 0 || strcmp(element, "error") == 0)
        fprintf(stream, "\" type=\"%s", verdict_name(c->verdict));
    fputs("\">", stream);
    fprintf(stream, "BASE %s, HEAD %s, 99 %% interval %s, detectable %s\n", base, head, interval,
            mde);
    xml_text(point->cause, stream);
    fprintf(stream, "</%s>\n", element);
}

/* JUnit knows failure, error and skipped; NULL: passed. */
static const char *xml_element(enum verdict verdict)
{
    static const char *const elements[VERDICT_COUNT] = {
        [VERDICT_REGRESSED] = "failure",    [VERDICT_FAILED] = "error",
        [VERDICT_INVALID] = "error",        [VERDICT_MISSING] = "error",
        [VERDICT_INCONCLUSIVE] = "skipped",
    };
    return elements[verdict];
}

static void write_junit(const struct comparison_set *set, FILE *stream)
{
    const int *n = set->totals;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
    fprintf(stream,
            "<testsuite name=\"ridge compare\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" "
            "skipped=\"%d\">\n",
            set->count, n[VERDICT_REGRESSED],
            n[VERDICT_FAILED] + n[VERDICT_INVALID] + n[VERDICT_MISSING], n[VERDICT_INCONCLUSIVE]);
    fputs("  <properties>\n", stream);
    for (size_t k = 0; k < set->difference_count; k++) {
        fputs("    <property name=\"differs: ", stream);
        xml_text(set->differences[k].what, stream);
        fputs("\" value=\"", stream);
        xml_text(set->differences[k].base, stream);
        fputs(" -&gt; ", stream);
        xml_text(set->differences[k].head, stream);
        fputs("\"/>\n", stream);
    }
    fputs("  </properties>\n", stream);
    for (size_t k = 0; k < set->count; k++) {
        const struct comparison *c = &set->verdicts[k];
        const char *element = xml_element(c->verdict);
        fputs("  <testcase classname=\"ridge.time\" name=\"", stream);
        xml_text(set->points[k].label, stream);
        if (!isnan(c->head_median))
            fprintf(stream, "\" time=\"%.9g", c->head_median);
        fputs(element ? "\">\n" : "\"/>\n", stream);
        if (element) {
            xml_child(element, &set->points[k], c, stream);
            fputs("  </testcase>\n", stream);
        }
    }
    fputs("</testsuite>\n", stream);
}

/* ---- JSON ---- */

static void json_differences(struct json *json, const struct comparison_set *set)
{
    json_open(json, "differences", '[');
    for (size_t k = 0; k < set->difference_count; k++) {
        json_open(json, NULL, '{');
        json_text(json, "what", set->differences[k].what);
        json_text(json, "base", set->differences[k].base);
        json_text(json, "head", set->differences[k].head);
        json_close(json);
    }
    json_close(json);
}

static void json_point(struct json *json, const struct comparison_set *set, size_t k)
{
    const struct comparison *c = &set->verdicts[k];
    json_open(json, NULL, '{');
    json_text(json, "point", set->points[k].key);
    json_text(json, "label", set->points[k].label);
    json_text(json, "canonical", set->points[k].canonical);
    json_text(json, "verdict", verdict_name(c->verdict));
    json_text(json, "reason", c->reason);
    json_text(json, "cause", *set->points[k].cause ? set->points[k].cause : NULL);
    json_number(json, "base_median", c->base_median);
    json_number(json, "head_median", c->head_median);
    json_text(json, "unit", "s");
    json_number(json, "ratio", c->ratio);
    json_number(json, "ci_low", c->ci_low);
    json_number(json, "ci_high", c->ci_high);
    json_number(json, "p", c->p);
    json_number(json, "p_adjusted", c->p_adjusted);
    json_number(json, "p_rank", c->p_rank);
    json_number(json, "mde", c->mde);
    json_number(json, "limit", c->limit);
    json_number(json, "noise", c->noise);
    json_text(json, "noise_from", *c->noise_from ? c->noise_from : NULL);
    json_int(json, "base_runs", c->base_runs);
    json_int(json, "head_runs", c->head_runs);
    json_int(json, "base_samples", c->base_samples);
    json_int(json, "head_samples", c->head_samples);
    json_number(json, "base_effective", c->base_effective);
    json_number(json, "head_effective", c->head_effective);
    json_text(json, "base_run", set->base.runs[0].uuid);
    json_text(json, "head_run", set->head.runs[0].uuid);
    json_bool(json, "same_program", set->same_program);
    json_differences(json, set);
    json_close(json);
}

static void write_json(const struct comparison_set *set, FILE *stream)
{
    struct json json;
    json_begin(&json, stream);
    json_open(&json, NULL, '[');
    for (size_t k = 0; k < set->count; k++)
        json_point(&json, set, k);
    json_close(&json);
}

const struct comparison_writer *comparison_writer_find(const char *name)
{
    static const struct comparison_writer writers[] = {
        {"text", write_text},
        {"markdown", write_markdown},
        {"junit", write_junit},
        {"json", write_json},
    };
    for (int k = 0; k < ARRAY_COUNT(writers); k++)
        if (strcmp(writers[k].name, name) == 0)
            return &writers[k];
    return NULL;
}
