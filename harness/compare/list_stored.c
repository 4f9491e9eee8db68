/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/compare/list_stored.h"

#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/compare/kept_program.h"
#include "harness/suite/suite.h"
#include "results/query.h"

/* ---- runs ---- */

static void runs_json(const struct grid *g)
{
    static const char *const texts[] = {"uuid",        "started_utc", "ended_utc", "host",
                                        "environment", "state",       "verdict",   "reason",
                                        "version",     "git",         "tag",       "branch",
                                        "baselines",   "suite",       "command"};
    static const char *const numbers[] = {"planned", "results", "ok",     "wrong",
                                          "failed",  "skipped", "invalid"};
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '[');
    for (int64_t row = 0; row < g->row_count; row++) {
        json_open(&json, NULL, '{');
        for (int k = 0; k < ARRAY_COUNT(texts); k++)
            json_text(&json, texts[k], grid_text(g, row, texts[k]));
        for (int k = 0; k < ARRAY_COUNT(numbers); k++)
            json_number(&json, numbers[k], grid_number(g, row, numbers[k]));
        json_close(&json);
    }
    json_close(&json);
}

/* "7 ok, 1 failed" */
static void points_text(const struct grid *g, int64_t row, char *text, size_t size)
{
    static const char *const parts[][2] = {{"wrong", "wrong"},
                                           {"failed", "failed"},
                                           {"skipped", "skipped"},
                                           {"ok_but_invalid", "invalid"}};
    double ok = grid_number(g, row, "ok") - grid_number(g, row, "ok_but_invalid");
    size_t used = (size_t)snprintf(text, size, "%.0f ok", ok);
    for (int k = 0; k < ARRAY_COUNT(parts) && used < size; k++) {
        double count = grid_number(g, row, parts[k][0]);
        if (count > 0)
            used += (size_t)snprintf(text + used, size - used, ", %.0f %s", count, parts[k][1]);
    }
    double left = grid_number(g, row, "planned") - grid_number(g, row, "results");
    if (left > 0 && used < size)
        snprintf(text + used, size - used, ", %.0f not done", left);
}

/* A run that was killed has no end in the database. */
static const char *state_text(const char *state)
{
    return strcmp(state, "running") == 0 ? "running or killed" : state;
}

static void runs_table(const struct grid *g)
{
    static const char *const titles[] = {"run", "started [UTC]", "machine", "commit",
                                         "tag", "baseline",      "points",  "state"};
    struct table t = {.column_count = 0};
    for (int k = 0; k < ARRAY_COUNT(titles); k++)
        table_column(&t, titles[k], TABLE_LEFT);
    for (int64_t row = 0; row < g->row_count; row++) {
        char points[128];
        const char *started = grid_text(g, row, "started_utc");
        bool invalid = strcmp(grid_text(g, row, "verdict"), "valid") != 0;
        points_text(g, row, points, sizeof(points));
        table_cell(&t, "%.8s", grid_text(g, row, "uuid"));
        table_cell(&t, "%.10s %.5s", started, strlen(started) > 11 ? started + 11 : "");
        table_cell(&t, "%s", grid_text(g, row, "host"));
        table_cell(&t, "%s", grid_text(g, row, "git"));
        table_cell(&t, "%s", grid_text(g, row, "tag"));
        table_cell(&t, "%s", grid_text(g, row, "baselines"));
        table_cell(&t, "%s", grid_number(g, row, "planned") > 0 ? points : "ceilings only");
        table_cell(&t, "%s%s%s", state_text(grid_text(g, row, "state")),
                   invalid ? ", INVALID: " : "", invalid ? grid_text(g, row, "reason") : "");
    }
    table_print(&t, stdout);
    table_release(&t);
}

enum status list_runs(const char *db, bool as_json, struct error *err)
{
    struct store *store;
    struct grid runs;
    TRY(store_open(db, STORE_READ, &store, err));
    enum status status = query_view(store, "runs", NULL, 0, &runs, err);
    if (status == STATUS_OK) {
        if (as_json)
            runs_json(&runs);
        else
            runs_table(&runs);
        grid_release(&runs);
    }
    store_close(store);
    return status;
}

/* ---- baselines ---- */

/* Where the program of a baseline is kept, or NULL. */
static const char *kept_path(const char *db, const struct grid *g, int64_t row, struct arena *arena)
{
    struct kept_program kept;
    const char *uid = grid_text(g, row, "build");
    return *uid && kept_program_find(db, uid, arena, &kept) ? kept.path : NULL;
}

static void baselines_json(const char *db, const struct grid *g, struct arena *arena)
{
    static const char *const texts[] = {"name",        "run_uuid", "note", "created_utc",
                                        "started_utc", "state",    "tag",  "host",
                                        "build",       "version",  "git"};
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '[');
    for (int64_t row = 0; row < g->row_count; row++) {
        json_open(&json, NULL, '{');
        for (int k = 0; k < ARRAY_COUNT(texts); k++)
            json_text(&json, texts[k], grid_text(g, row, texts[k]));
        json_text(&json, "program", kept_path(db, g, row, arena));
        json_close(&json);
    }
    json_close(&json);
}

static void baselines_table(const char *db, const struct grid *g, struct arena *arena)
{
    static const char *const titles[] = {"baseline", "run",     "set [UTC]", "machine",
                                         "commit",   "program", "note"};
    struct table t = {.column_count = 0};
    for (int k = 0; k < ARRAY_COUNT(titles); k++)
        table_column(&t, titles[k], TABLE_LEFT);
    for (int64_t row = 0; row < g->row_count; row++) {
        const char *path = kept_path(db, g, row, arena);
        bool here = grid_text(g, row, "build")[0] != '\0';
        table_cell(&t, "%s", grid_text(g, row, "name"));
        table_cell(&t, "%.8s", grid_text(g, row, "run_uuid"));
        table_cell(&t, "%.10s", grid_text(g, row, "created_utc"));
        table_cell(&t, "%s", grid_text(g, row, "host"));
        table_cell(&t, "%s", grid_text(g, row, "git"));
        table_cell(&t, "%s", path ? path : here ? "not kept" : "the run is not in this database");
        table_cell(&t, "%s", grid_text(g, row, "note"));
    }
    table_print(&t, stdout);
    table_release(&t);
}

enum status list_baselines(const char *db, bool as_json, struct error *err)
{
    struct store *store;
    struct grid g;
    struct arena arena = {0};
    TRY(store_open(db, STORE_READ, &store, err));
    enum status status = query_view(store, "baselines", NULL, 0, &g, err);
    if (status == STATUS_OK) {
        if (as_json)
            baselines_json(db, &g, &arena);
        else
            baselines_table(db, &g, &arena);
        grid_release(&g);
    }
    arena_release(&arena);
    store_close(store);
    return status;
}

/* ---- suites ---- */

static const char *axis_text(const struct suite *suite, enum suite_key_id key)
{
    return suite->axes[key].count ? suite->axes[key].values[0].text : "";
}

static void put_suite(struct json *json, struct table *table, const char *name,
                      const struct suite *suite)
{
    const char *what = axis_text(suite, KEY_DESCRIPTION);
    if (table) {
        table_cell(table, "%s", name);
        table_cell(table, "%zu", suite->count);
        table_cell(table, "%s", *what ? what : axis_text(suite, KEY_NAME));
        return;
    }
    json_open(json, NULL, '{');
    json_text(json, "name", name);
    json_text(json, "title", axis_text(suite, KEY_NAME));
    json_text(json, "description", what);
    json_int(json, "workloads", (int64_t)suite->count);
    json_close(json);
}

static enum status put_suites(struct json *json, struct table *table, struct error *err)
{
    for (const struct embedded *file = embedded_next("suites/", NULL); file;
         file = embedded_next("suites/", file)) {
        struct suite suite;
        char name[64];
        const char *base = file->path + strlen("suites/");
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
        TRY(suite_parse(file->path, file->text, strlen(file->text), 1, &suite, err));
        put_suite(json, table, name, &suite);
        suite_release(&suite);
    }
    return STATUS_OK;
}

enum status list_suites(bool as_json, struct error *err)
{
    struct json json;
    struct table table = {.column_count = 0};
    enum status status;
    if (as_json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
        status = put_suites(&json, NULL, err);
        json_close(&json);
        return status;
    }
    table_column(&table, "suite", TABLE_LEFT);
    table_column(&table, "workloads", TABLE_RIGHT);
    table_column(&table, "what", TABLE_LEFT);
    status = put_suites(NULL, &table, err);
    table_print(&table, stdout);
    table_release(&table);
    return status;
}
