/* SPDX-License-Identifier: Apache-2.0
 *
 * `ridge help suite.toml`, and the second half of docs/suite.md. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "harness/suite/suite.h"

static const char *type_text(const struct suite_key *key)
{
    static const char *const names[] = {"string", "strings", "integer", "number", "true or false"};
    return names[key->type];
}

/* "integer or "all", 1 to 65536; sweeps" */
static void describe(const struct suite_key *key, char *text, size_t size)
{
    size_t used = 0;
    bool words = key->choices && key->type != SUITE_INT;
    used += (size_t)snprintf(text, size, "%s", words ? "" : type_text(key));
    for (const char *const *choice = key->choices; choice && *choice && used < size; choice++) {
        bool again = false; /* profilers come from two lists */
        for (const char *const *other = key->choices; other != choice; other++)
            again = again || strcmp(*other, *choice) == 0;
        const char *gap = choice != key->choices ? ", " : words ? "" : " or ";
        if (!again)
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\"", gap, *choice);
    }
    if (used < size && (key->type == SUITE_INT || key->type == SUITE_NUMBER)) {
        if (key->min > 0 && key->min < 1e-100)
            used += (size_t)snprintf(text + used, size - used, ", above 0 to %g", key->max);
        else
            used += (size_t)snprintf(text + used, size - used, ", %g to %g", key->min, key->max);
    }
    if (used < size && key->type == SUITE_WORDS)
        used += (size_t)snprintf(text + used, size - used, "%s", "; a list is one value");
    if (used < size && key->sweeps)
        snprintf(text + used, size - used, "%s", "; a list sweeps");
}

/* A paragraph in lines of 84 columns, all indented. */
static void print_filled(FILE *stream, const char *text, int indent)
{
    int column = 0;
    for (const char *at = text; *at;) {
        int length = (int)strcspn(at, " ");
        if (column == 0 || column + 1 + length > 84) {
            fprintf(stream, "%s%*s", column ? "\n" : "", indent, "");
            column = indent - 1;
        } else {
            fputc(' ', stream);
        }
        fprintf(stream, "%.*s", length, at);
        column += 1 + length;
        at += length + (int)strspn(at + length, " ");
    }
    fputc('\n', stream);
}

static void print_key(FILE *stream, const struct suite_key *key, bool markdown)
{
    char kind[256];
    describe(key, kind, sizeof(kind));
    const char *usual = !key->usual ? "" : *key->usual ? key->usual : "\"\"";
    if (markdown) {
        fprintf(stream, "| `%s` | %s | %s%s%s | %s |\n", key->name, kind, *usual ? "`" : "", usual,
                *usual ? "`" : "", key->help);
        return;
    }
    fprintf(stream, "  %-16s %s%s%s\n", key->name, kind, *usual ? "; default " : "", usual);
    print_filled(stream, key->help, 19);
}

static void print_table(FILE *stream, enum suite_table table, bool markdown)
{
    if (markdown)
        fprintf(stream, "\n### %s\n\n%s\n\n| key | values | default | what |\n|---|---|---|---|\n",
                suite_table_title(table), suite_table_help(table));
    else
        fprintf(stream, "\n%s\n", suite_table_title(table));
    if (!markdown)
        print_filled(stream, suite_table_help(table), 2);
    for (int k = 0; k < KEY_COUNT; k++)
        if (suite_key((enum suite_key_id)k)->table == table)
            print_key(stream, suite_key((enum suite_key_id)k), markdown);
}

void suite_print_reference(FILE *stream, bool markdown)
{
    static const char example[] = "[defaults]\n"
                                  "threads = [1, \"all\"]\n\n"
                                  "[[workload]]\n"
                                  "name = \"resnet50\"\n"
                                  "version = \"1.5\"\n"
                                  "batch = { from = 1, to = 32, times = 2 }\n"
                                  "stop = { seconds_max = 30 }\n";
    const char *fence = markdown ? "```\n" : "";
    fprintf(stream,
            "%sA suite is a TOML file that says what to measure:\n\n%s%s%s\n"
            "A list makes a point of each value, and lists multiply: what is written first varies\n"
            "slowest, [defaults] vary faster than a workload's own keys. A range of integers is\n"
            "{ from = 1, to = 64, times = 2 } or { from = 8, to = 64, plus = 8 }; its last value\n"
            "is always `to`. Points that cannot run on a machine are skipped with the reason.\n",
            markdown ? "## Reference\n\n" : "", fence, example, fence);
    for (int table = 0; table < TABLE_COUNT; table++)
        print_table(stream, (enum suite_table)table, markdown);
}
