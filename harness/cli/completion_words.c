/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/completion.h"

#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "engine/graph/kernel.h"
#include "engine/run/provider.h"
#include "harness/suite/device_words.h"
#include "plots/plot.h"
#include "results/format.h"
#include "results/query.h"
#include "workloads/workload.h"

/* ---- words that are built in ---- */

static enum status print_workloads(FILE *stream, struct error *err)
{
    (void)err;
    for (int k = 0; k < workload_count(); k++)
        fprintf(stream, "%s\n", workload_at(k)->name);
    return STATUS_OK;
}

static enum status print_suites(FILE *stream, struct error *err)
{
    (void)err;
    for (const struct embedded *file = embedded_next("suites/", NULL); file;
         file = embedded_next("suites/", file)) {
        const char *name = file->path + strlen("suites/");
        fprintf(stream, "%.*s\n", (int)strcspn(name, "."), name);
    }
    return STATUS_OK;
}

static enum status print_plots(FILE *stream, struct error *err)
{
    struct plot plot;
    for (const struct embedded *file = plot_next(NULL); file; file = plot_next(file)) {
        TRY(plot_read(file, &plot, err));
        fprintf(stream, "%s\n", plot.name);
    }
    return STATUS_OK;
}

static enum status print_formats(FILE *stream, struct error *err)
{
    (void)err;
    for (int k = 0; k < format_count(); k++)
        fprintf(stream, "%s\n", format_at(k)->name);
    return STATUS_OK;
}

static enum status print_isas(FILE *stream, struct error *err)
{
    (void)err;
    for (int k = 0; k < ISA_COUNT; k++)
        fprintf(stream, "%s\n", isa_name((enum isa)k));
    return STATUS_OK;
}

static enum status print_shells(FILE *stream, struct error *err)
{
    (void)err;
    fputs("bash\nzsh\nfish\n", stream);
    return STATUS_OK;
}

static enum status print_kinds(FILE *stream, struct error *err)
{
    (void)err;
    for (int k = 0; k < word_kind_count(); k++)
        fprintf(stream, "%s\n", word_kind_at(k)->name);
    return STATUS_OK;
}

static enum status print_list(int (*list)(struct arena *arena, const char *const **words),
                              FILE *stream, struct error *err)
{
    struct arena arena = {0};
    const char *const *words;
    int count = list(&arena, &words);
    for (int k = 0; k < count; k++)
        fprintf(stream, "%s\n", words[k]);
    arena_release(&arena);
    return count < 0 ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

static enum status print_providers(FILE *stream, struct error *err)
{
    return print_list(provider_names, stream, err);
}

static enum status print_devices(FILE *stream, struct error *err)
{
    return print_list(device_words, stream, err);
}

/* ---- words of a database ---- */

/* Names come first: they were given in order to be typed. */
static const char runs_sql[] =
    "SELECT word FROM (SELECT 'latest' AS word, 0 AS kind, '' AS t "
    "UNION ALL SELECT name, 1, '' FROM baseline "
    "UNION ALL SELECT tag, 2, max(started_utc) FROM run WHERE tag <> '' GROUP BY tag "
    "UNION ALL SELECT * FROM (SELECT substr(uuid, 1, 8), 3, started_utc FROM run "
    "ORDER BY started_utc DESC LIMIT 50)) ORDER BY kind, t DESC";
static const char points_sql[] =
    "SELECT word FROM (SELECT DISTINCT workload || iif(params = '', '', ':' || params) AS word, "
    "0 AS kind FROM point UNION ALL SELECT key, 1 FROM point) ORDER BY kind, word";

static enum status print_query(const char *db, const char *sql, FILE *stream, struct error *err)
{
    struct store *store;
    struct grid grid;
    TRY(store_open(db, STORE_READ, &store, err));
    enum status status = query_sql(store, sql, NULL, 0, &grid, err);
    if (status == STATUS_OK) {
        for (int64_t row = 0; row < grid.row_count; row++)
            fprintf(stream, "%s\n", grid_at(&grid, row, 0)->text);
        grid_release(&grid);
    }
    store_close(store);
    return status;
}

/* ---- kinds ---- */

static const struct word_kind kinds[] = {
    {"workloads", "MODEL", NULL, print_workloads, 0},
    {"suites", "SUITE", NULL, print_suites, 0},
    {"plots", "PLOT", NULL, print_plots, 0},
    {"formats", NULL, NULL, print_formats, 0},
    {"devices", NULL, NULL, print_devices, 0},
    {"precisions", NULL, NULL, NULL, KEY_PRECISION},
    {"modes", NULL, NULL, NULL, KEY_MODE},
    {"scenarios", NULL, NULL, NULL, KEY_SCENARIO},
    {"profilers", NULL, NULL, NULL, KEY_PROFILERS},
    {"providers", NULL, NULL, print_providers, 0},
    {"isas", NULL, NULL, print_isas, 0},
    {"shells", NULL, NULL, print_shells, 0},
    {"kinds", NULL, NULL, print_kinds, 0},
    {"runs", "BASE", runs_sql, NULL, 0},
    {"points", "POINT", points_sql, NULL, 0},
    {"hosts", NULL, "SELECT DISTINCT label FROM host ORDER BY 1", NULL, 0},
    {"baselines", NULL, "SELECT name FROM baseline ORDER BY 1", NULL, 0},
};

/* An option has one meaning in all commands. */
static const struct {
    const char *option, *kind;
} values[] = {
    {"device", "devices"},     {"precision", "precisions"}, {"mode", "modes"},
    {"scenario", "scenarios"}, {"profilers", "profilers"},  {"providers", "providers"},
    {"isa", "isas"},           {"format", "formats"},       {"only", "workloads"},
    {"run", "runs"},           {"against", "runs"},         {"host", "hosts"},
    {"completion", "shells"},  {"words", "kinds"},          {"set-baseline", "baselines"},
};

int word_kind_count(void)
{
    return ARRAY_COUNT(kinds);
}

const struct word_kind *word_kind_at(int index)
{
    return &kinds[index];
}

static const struct word_kind *find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(kinds); k++)
        if (strcmp(kinds[k].name, name) == 0)
            return &kinds[k];
    return NULL;
}

enum status word_kind_find(const char *name, const struct word_kind **kind, struct error *err)
{
    const char *names[ARRAY_COUNT(kinds)];
    for (int k = 0; k < ARRAY_COUNT(kinds); k++)
        names[k] = kinds[k].name;
    *kind = find(name);
    if (*kind)
        return STATUS_OK;
    const char *near = nearest_word(name, names, ARRAY_COUNT(kinds));
    return FAIL(err, STATUS_FAILED, "--words \"%.60s\" is no kind of words%s%s%s", name,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum status word_kind_print(const struct word_kind *kind, const char *db, FILE *stream,
                            struct error *err)
{
    if (kind->sql)
        return print_query(db, kind->sql, stream, err);
    if (kind->print)
        return kind->print(stream, err);
    for (const char *const *word = suite_key(kind->key)->choices; *word; word++)
        fprintf(stream, "%s\n", *word);
    return STATUS_OK;
}

const struct word_kind *word_kind_of_option(const struct option *option)
{
    for (int k = 0; k < ARRAY_COUNT(values); k++)
        if (strcmp(values[k].option, option->name) == 0)
            return find(values[k].kind);
    return NULL;
}
