/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison for CI jobs: JUnit XML for their lists of tests, and workflow commands that GitHub
 * shows as annotations of a commit. */
#include <math.h>
#include <string.h>

#include "harness/compare/comparison_print.h"

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

static void xml_child(const char *element, const struct comparison_set *set, size_t point,
                      FILE *stream)
{
    const struct comparison *c = &set->verdicts[point];
    struct comparison_cells cells;
    comparison_cells_time(&cells, set, point);
    fprintf(stream, "    <%s message=\"", element);
    xml_text(verdict_name(c->verdict), stream);
    fputs(": ", stream);
    xml_text(c->reason, stream);
    if (strcmp(element, "failure") == 0 || strcmp(element, "error") == 0)
        fprintf(stream, "\" type=\"%s", verdict_name(c->verdict));
    fputs("\">", stream);
    fprintf(stream, "BASE %s, HEAD %s, 99 %% interval %s, detectable %s\n", cells.base, cells.head,
            cells.interval, cells.detectable);
    if (comparison_cells_rate(&cells, set, point))
        fprintf(stream, "%s: BASE %s, HEAD %s, %s\n", set->points[point].rate.name, cells.base,
                cells.head, cells.change);
    xml_text(set->points[point].cause, stream);
    fprintf(stream, "</%s>\n", element);
}

/* JUnit knows failure, error and skipped; NULL: passed. */
static const char *xml_element(enum verdict verdict)
{
    static const char *const elements[VERDICT_COUNT] = {
        [VERDICT_REGRESSED] = "failure",    [VERDICT_FAILED] = "error",
        [VERDICT_INVALID] = "error",        [VERDICT_MISSING] = "error",
        [VERDICT_INCONCLUSIVE] = "skipped", [VERDICT_MACHINE] = "skipped",
    };
    return elements[verdict];
}

static void xml_properties(const char *prefix, const struct difference *all, size_t count,
                           FILE *stream)
{
    for (size_t k = 0; k < count; k++) {
        fprintf(stream, "    <property name=\"%s", prefix);
        xml_text(all[k].what, stream);
        fputs("\" value=\"", stream);
        xml_text(all[k].base, stream);
        fputs(" -&gt; ", stream);
        xml_text(all[k].head, stream);
        fputs("\"/>\n", stream);
    }
}

void comparison_write_junit(const struct comparison_set *set, FILE *stream)
{
    const int *n = set->totals;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
    fprintf(stream,
            "<testsuite name=\"ridge compare\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" "
            "skipped=\"%d\">\n",
            set->count, n[VERDICT_REGRESSED],
            n[VERDICT_FAILED] + n[VERDICT_INVALID] + n[VERDICT_MISSING],
            n[VERDICT_INCONCLUSIVE] + n[VERDICT_MACHINE]);
    fputs("  <properties>\n", stream);
    xml_properties("around: ", set->around, set->around_count, stream);
    xml_properties("differs: ", set->differences, set->difference_count, stream);
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
            xml_child(element, set, k, stream);
            fputs("  </testcase>\n", stream);
        }
    }
    fputs("</testsuite>\n", stream);
}

/* ---- GitHub ---- */

enum { ANNOTATIONS_MAX = 10 }; /* of a kind; GitHub drops what a step prints beyond that */

/* A workflow command ends with its line; titles end with ',' and ':' as well. */
static void github_text(const char *text, bool title, FILE *stream)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '%' || c < 0x20 || (title && (c == ':' || c == ',')))
            fprintf(stream, "%%%02X", c);
        else
            fputc(c, stream);
    }
}

/* NULL: what stayed the same needs no annotation. */
static const char *github_command(enum verdict verdict)
{
    static const char *const commands[VERDICT_COUNT] = {
        [VERDICT_REGRESSED] = "error",      [VERDICT_FAILED] = "error",
        [VERDICT_INVALID] = "warning",      [VERDICT_MISSING] = "warning",
        [VERDICT_INCONCLUSIVE] = "warning", [VERDICT_MACHINE] = "warning",
        [VERDICT_IMPROVED] = "notice",      [VERDICT_NEW] = "notice",
    };
    return commands[verdict];
}

static void github_point(const struct comparison_set *set, size_t point, FILE *stream)
{
    const struct comparison *c = &set->verdicts[point];
    struct comparison_cells cells;
    comparison_cells_time(&cells, set, point);
    fprintf(stream, "::%s title=%s ", github_command(c->verdict), verdict_name(c->verdict));
    github_text(set->points[point].label, true, stream);
    fputs("::", stream);
    github_text(c->reason, false, stream);
    if (!isnan(c->ratio)) {
        fputs("; BASE ", stream);
        github_text(cells.base, false, stream);
        fputs(", HEAD ", stream);
        github_text(cells.head, false, stream);
    }
    if (*set->points[point].cause)
        fputs("; ", stream);
    github_text(set->points[point].cause, false, stream);
    fputc('\n', stream);
}

static void github_rows(const char *title, const struct difference *all, size_t count, FILE *stream)
{
    if (!count)
        return;
    fprintf(stream, "::notice title=ridge compare%%3A %s::", title);
    for (size_t k = 0; k < count; k++) {
        const struct difference *d = &all[k];
        const char *parts[] = {k ? "\n" : "", d->what,
                               ": ",          *d->base ? d->base : "(none)",
                               " -> ",        *d->head ? d->head : "(none)"};
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
            github_text(parts[i], false, stream);
    }
    fputc('\n', stream);
}

void comparison_write_github(const struct comparison_set *set, FILE *stream)
{
    char totals[256];
    const char *last = "";
    int shown = 0, left_out = 0;
    github_rows("around the runs", set->around, set->around_count, stream);
    github_rows("BASE and HEAD differ", set->differences, set->difference_count, stream);
    for (size_t k = 0; k < set->count; k++) {
        size_t point = comparison_ordered(set, k);
        const char *command = github_command(set->verdicts[point].verdict);
        if (!command)
            continue;
        shown = strcmp(command, last) == 0 ? shown + 1 : 1;
        last = command;
        if (shown < ANNOTATIONS_MAX)
            github_point(set, point, stream);
        else
            left_out++;
    }
    comparison_totals(set, totals, sizeof(totals));
    fprintf(stream, "ridge compare: %s", totals);
    if (left_out)
        fprintf(stream, "; %d of them without an annotation", left_out);
    fputc('\n', stream);
}
