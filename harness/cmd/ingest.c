/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge ingest: results of other machines, and of runs that could not write to their database, into
 * one file. */
#include <stdbool.h>
#include <stdio.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/cli/command.h"
#include "results/store.h"

struct ingest_options {
    const char *db;
    bool json;
};

static const struct option options[] = {
    {"db", 'd', OPTION_TEXT, offsetof(struct ingest_options, db), "FILE",
     "database that receives them, default " STORE_DEFAULT},
    {"json", 0, OPTION_FLAG, offsetof(struct ingest_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

/* The outcome for one file; the message is empty when all is well. */
struct outcome {
    const char *file;
    struct ingest_counts counts;
    struct error err;
};

static void write_json(struct json *json, const struct outcome *outcome)
{
    json_open(json, NULL, '{');
    json_text(json, "file", outcome->file);
    json_int(json, "runs_new", outcome->counts.runs_new);
    json_int(json, "runs_known", outcome->counts.runs_known);
    json_int(json, "results_new", outcome->counts.results_new);
    json_int(json, "samples_new", outcome->counts.samples_new);
    json_text(json, "error", outcome->err.message[0] ? outcome->err.message : NULL);
    json_close(json);
}

static void write_row(struct table *table, const struct outcome *outcome)
{
    const struct ingest_counts *counts = &outcome->counts;
    table_cell(table, "%s", outcome->file);
    table_cell(table, "%lld", (long long)counts->runs_new);
    table_cell(table, "%lld", (long long)counts->runs_known);
    table_cell(table, "%lld", (long long)counts->results_new);
    table_cell(table, "%lld", (long long)counts->samples_new);
    table_cell(table, "%s", outcome->err.message[0] ? "not taken in" : "");
}

static void begin_table(struct table *table)
{
    table_column(table, "file", TABLE_LEFT);
    table_column(table, "new runs", TABLE_RIGHT);
    table_column(table, "known runs", TABLE_RIGHT);
    table_column(table, "new results", TABLE_RIGHT);
    table_column(table, "new samples", TABLE_RIGHT);
    table_column(table, "", TABLE_LEFT);
}

/* One bad file does not keep the others from being read; the exit code is that of the last bad
 * one. */
static int ingest_all(struct store *store, int count, char **files, bool as_json)
{
    struct json json;
    struct table table = {0};
    int code = EXIT_FINE;
    json_begin(&json, stdout);
    if (as_json)
        json_open(&json, NULL, '[');
    begin_table(&table);
    for (int k = 0; k < count; k++) {
        struct outcome outcome = {.file = files[k]};
        if (store_ingest(store, files[k], &outcome.counts, &outcome.err) != STATUS_OK)
            code = command_fail(&outcome.err);
        if (as_json)
            write_json(&json, &outcome);
        else
            write_row(&table, &outcome);
    }
    if (as_json)
        json_close(&json);
    else
        table_print(&table, stdout);
    table_release(&table);
    return code;
}

static int ingest_main(int word_count, char **words, const void *values)
{
    const struct ingest_options *o = values;
    struct error err = {0};
    struct store *store;
    if (store_open(o->db ? o->db : STORE_DEFAULT, STORE_WRITE, &store, &err) != STATUS_OK)
        return command_fail(&err);
    if (store_spools_left(store))
        fprintf(stderr, "ridge: %d files of %s.spool could not be taken in; they are still there\n",
                store_spools_left(store), store_path(store));
    int code = ingest_all(store, word_count, words, o->json);
    store_close(store);
    return code;
}

REGISTER(command, ingest) = {
    .name = "ingest",
    .summary = "take in results of other databases",
    .usage = "OTHER.db... [options]",
    .help = "Copies every run and result that the database lacks; doing it twice changes nothing.\n"
            "The other files are not changed. A file that is damaged, of a newer ridge or not a\n"
            "database of results is refused as a whole.\n",
    .options = options,
    .values_size = sizeof(struct ingest_options),
    .words_min = 1,
    .main = ingest_main,
};
