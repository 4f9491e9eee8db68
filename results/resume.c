/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the run that a program was torn out of, and reading back what it has of a point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "results/sqlite.h"
#include "results/store.h"

/* ---- the run ---- */

static enum status find_run(struct store *store, const char *sql, const char *word,
                            struct run_found *out, struct error *err)
{
    sqlite3_stmt *statement;
    *out = (struct run_found){.run = 0};
    TRY(sql_prepare(store, sql, &statement, err));
    sqlite3_bind_text(statement, 1, word, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    const char *uuid = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 1) : NULL;
    if (uuid && strlen(uuid) < sizeof(out->uuid)) {
        out->run = sqlite3_column_int64(statement, 0);
        memcpy(out->uuid, uuid, strlen(uuid) + 1);
        out->rounds = sqlite3_column_int(statement, 2);
        out->order_seed = sqlite3_column_int64(statement, 3);
        const char *tag = (const char *)sqlite3_column_text(statement, 4);
        snprintf(out->tag, sizeof(out->tag), "%s", tag ? tag : "");
    }
    enum status status = STATUS_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sql_fail(store, "looking for an unfinished run", err);
    sqlite3_finalize(statement);
    return status;
}

enum status run_find_unfinished(struct store *store, const char *plan_hash, struct run_found *out,
                                struct error *err)
{
    return find_run(store,
                    "SELECT id, uuid, rounds, order_seed, tag FROM run WHERE plan_hash = ? "
                    "AND state <> 'finished' ORDER BY started_utc DESC, id DESC LIMIT 1",
                    plan_hash, out, err);
}

enum status run_find_uuid(struct store *store, const char *uuid, struct run_found *out,
                          struct error *err)
{
    return find_run(store, "SELECT id, uuid, rounds, order_seed, tag FROM run WHERE uuid = ?", uuid,
                    out, err);
}

enum status run_fact(struct store *store, int64_t run, const char *category, const char *key,
                     struct arena *arena, const char **value, struct error *err)
{
    sqlite3_stmt *statement;
    *value = NULL;
    TRY(sql_prepare(store,
                    "SELECT value FROM run_fact WHERE run = ? AND phase = 'before' "
                    "AND category = ? AND key = ? AND value IS NOT NULL",
                    &statement, err));
    sqlite3_bind_int64(statement, 1, run);
    sqlite3_bind_text(statement, 2, category, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, key, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    enum status status = STATUS_OK;
    if (code == SQLITE_ROW)
        *value = arena_strdup(arena, (const char *)sqlite3_column_text(statement, 0));
    if (code == SQLITE_ROW && !*value)
        status = FAIL_NO_MEMORY(err);
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sql_fail(store, "reading what a run was started with", err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- a result ---- */

struct reader {
    struct store *store;
    struct arena *arena;
    sqlite3_stmt *statement;
    bool out_of_memory;
};

static const char *read_text(struct reader *r, int column)
{
    const char *text = (const char *)sqlite3_column_text(r->statement, column);
    const char *kept = text ? arena_strdup(r->arena, text) : "";
    r->out_of_memory = r->out_of_memory || !kept;
    return kept ? kept : "";
}

static double read_number(struct reader *r, int column)
{
    return sqlite3_column_type(r->statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(r->statement, column);
}

static int64_t read_integer(struct reader *r, int column)
{
    return sqlite3_column_type(r->statement, column) == SQLITE_NULL
               ? RECORD_NONE
               : sqlite3_column_int64(r->statement, column);
}

/* The place of a text in a list of names; the schema allows no others. */
static int read_name(struct reader *r, int column, const char *const *names, int count)
{
    const char *text = (const char *)sqlite3_column_text(r->statement, column);
    if (text)
        for (int k = 0; k < count; k++)
            if (strcmp(text, names[k]) == 0)
                return k;
    return 0;
}

typedef bool read_row(struct reader *r, void *context); /* false: no memory */

/* Calls `row` for each row of a SELECT about the result with this id. */
static enum status read_rows(struct reader *r, const char *sql, int64_t id, read_row *row,
                             void *context, struct error *err)
{
    int code;
    TRY(sql_prepare(r->store, sql, &r->statement, err));
    sqlite3_bind_int64(r->statement, 1, id);
    while ((code = sqlite3_step(r->statement)) == SQLITE_ROW && !r->out_of_memory)
        if (!row(r, context))
            r->out_of_memory = true;
    enum status status = STATUS_OK;
    if (r->out_of_memory)
        status = FAIL_NO_MEMORY(err);
    else if (code != SQLITE_DONE)
        status = sql_fail(r->store, "reading a result", err);
    sqlite3_finalize(r->statement);
    return status;
}

struct loading {
    int64_t id;
    struct record *record;
    struct op_record *ops;
    struct metric_record *metrics;
    struct visit_record *visits;
    struct sample_record *samples;
    size_t op_room, metric_room, visit_room, sample_room;
};

static bool read_head(struct reader *r, void *context)
{
    struct loading *l = context;
    struct record *record = l->record;
    l->id = sqlite3_column_int64(r->statement, 0);
    record->status = (enum result_status)read_name(r, 1, result_status_names, RESULT_STATUS_COUNT);
    record->valid = strcmp((const char *)sqlite3_column_text(r->statement, 2), "valid") == 0;
    record->reason = read_text(r, 3);
    record->verify_error = read_number(r, 4);
    record->verify_bound = read_number(r, 5);
    record->verify_how = read_text(r, 6);
    record->stop_reason = read_text(r, 7);
    record->started_utc = read_text(r, 8);
    record->wall_s = read_number(r, 9);
    record->reproduce = read_text(r, 10);
    return true;
}

static bool read_op(struct reader *r, void *context)
{
    struct loading *l = context;
    size_t count = (size_t)l->record->op_count;
    l->ops = arena_grow(r->arena, l->ops, &l->op_room, count + 1, sizeof(*l->ops));
    if (!l->ops)
        return false;
    l->ops[count] = (struct op_record){read_text(r, 0), read_text(r, 1), read_text(r, 2),
                                       read_text(r, 3), read_text(r, 4)};
    l->record->op_count++;
    return true;
}

static bool read_metric(struct reader *r, void *context)
{
    struct loading *l = context;
    size_t count = (size_t)l->record->metric_count;
    int64_t op = read_integer(r, 0);
    l->metrics = arena_grow(r->arena, l->metrics, &l->metric_room, count + 1, sizeof(*l->metrics));
    if (!l->metrics)
        return false;
    l->metrics[count] =
        (struct metric_record){.op = op == RECORD_NONE ? -1 : (int)op,
                               .name = read_text(r, 1),
                               .unit = read_text(r, 2),
                               .source = read_text(r, 3),
                               .better = (enum better)read_name(r, 4, better_names, BETTER_COUNT),
                               .value = read_number(r, 5),
                               .reason = read_text(r, 6),
                               .formula = read_text(r, 7),
                               .n = read_integer(r, 8),
                               .min = read_number(r, 9),
                               .q1 = read_number(r, 10),
                               .q3 = read_number(r, 11),
                               .max = read_number(r, 12),
                               .mad = read_number(r, 13),
                               .ci_low = read_number(r, 14),
                               .ci_high = read_number(r, 15)};
    l->record->metric_count++;
    return true;
}

static bool read_visit(struct reader *r, void *context)
{
    struct loading *l = context;
    size_t count = (size_t)l->record->visit_count;
    l->visits = arena_grow(r->arena, l->visits, &l->visit_room, count + 1, sizeof(*l->visits));
    if (!l->visits)
        return false;
    l->visits[count] = (struct visit_record){.round = (int)read_integer(r, 0),
                                             .started_utc = read_text(r, 1),
                                             .samples = read_integer(r, 2),
                                             .median_s = read_number(r, 3),
                                             .ci_low_s = read_number(r, 4),
                                             .ci_high_s = read_number(r, 5),
                                             .steal_share = read_number(r, 6),
                                             .wait_share = read_number(r, 7),
                                             .clock_hz = read_number(r, 8),
                                             .reason = read_text(r, 9)};
    l->record->visit_count++;
    return true;
}

static bool read_level(struct reader *r, void *context)
{
    struct loading *l = context;
    int64_t round = read_integer(r, 0);
    for (int k = 0; l->visits && k < l->record->visit_count; k++) {
        struct visit_record *visit = &l->visits[k];
        if (visit->round != round || visit->level_count == LEVELS_MAX)
            continue;
        visit->levels[visit->level_count++] = (struct level_record){
            .name = read_text(r, 1),
            .unit = read_text(r, 2),
            .better = (enum better)read_name(r, 3, better_names, BETTER_COUNT),
            .value = read_number(r, 4),
            .reason = read_text(r, 5)};
    }
    return true;
}

static bool read_sample(struct reader *r, void *context)
{
    struct loading *l = context;
    size_t count = (size_t)l->record->sample_count;
    if (count == l->sample_room) {
        l->sample_room = l->sample_room ? 2 * l->sample_room : 1024;
        struct sample_record *grown = realloc(l->samples, l->sample_room * sizeof(*grown));
        if (!grown)
            return false;
        l->samples = grown;
    }
    l->samples[count] = (struct sample_record){
        .visit = (int)read_integer(r, 0),
        .phase = (enum sample_phase)read_name(r, 1, phase_names, SAMPLE_PHASE_COUNT),
        .time_ns = read_integer(r, 2),
        .queue_ns = read_integer(r, 3),
        .context_switches = read_integer(r, 4),
        .migrations = read_integer(r, 5),
        .page_faults = read_integer(r, 6),
        .steal_ns = read_integer(r, 7),
        .clock_hz = read_number(r, 8)};
    l->record->sample_count++;
    return true;
}

static enum status load_parts(struct reader *r, struct loading *l, struct error *err)
{
    static const struct {
        const char *sql;
        read_row *row;
    } parts[] = {
        {"SELECT name, kind, shape, kernel, provider FROM op WHERE result = ? ORDER BY idx",
         read_op},
        {"SELECT op, name, unit, source, better, value, reason, formula, n, min, q1, q3, max, mad, "
         "ci_low, ci_high FROM metric WHERE result = ? ORDER BY id",
         read_metric},
        {"SELECT round, started_utc, samples, median_s, ci_low_s, ci_high_s, steal_share, "
         "wait_share, clock_hz, reason FROM visit WHERE result = ? ORDER BY round",
         read_visit},
        {"SELECT round, name, unit, better, value, reason FROM level WHERE result = ? "
         "ORDER BY round, name",
         read_level},
        {"SELECT visit, phase, time_ns, queue_ns, context_switches, migrations, page_faults, "
         "steal_ns, clock_hz FROM sample WHERE result = ? ORDER BY idx",
         read_sample},
    };
    for (int k = 0; k < ARRAY_COUNT(parts); k++)
        TRY(read_rows(r, parts[k].sql, l->id, parts[k].row, l, err));
    return STATUS_OK;
}

static int64_t find_result(struct store *store, int64_t run, int sequence, struct error *err)
{
    sqlite3_stmt *statement;
    int64_t id = 0;
    if (sql_prepare(store, "SELECT id FROM result WHERE run = ? AND sequence = ?", &statement, err))
        return 0;
    sqlite3_bind_int64(statement, 1, run);
    sqlite3_bind_int(statement, 2, sequence);
    if (sqlite3_step(statement) == SQLITE_ROW)
        id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return id;
}

bool run_has(struct store *store, int64_t run, int sequence)
{
    return find_result(store, run, sequence, NULL) != 0;
}

bool run_has_all(struct store *store, int64_t run, int sequence, int rounds)
{
    char sql[200];
    int64_t done = 0, id = find_result(store, run, sequence, NULL);
    snprintf(sql, sizeof(sql),
             "SELECT status <> 'ok' OR (SELECT count(*) FROM visit WHERE result = r.id) >= %d "
             "FROM result AS r WHERE r.id = %lld",
             rounds, (long long)id);
    return id && sql_integer(store, sql, &done, NULL) == STATUS_OK && done;
}

enum status run_load(struct store *store, int64_t run, int sequence, struct arena *arena,
                     struct record *record, struct error *err)
{
    static const char head[] =
        "SELECT id, status, verdict, reason, verify_error, verify_bound, verify_how, stop_reason, "
        "started_utc, wall_s, reproduce FROM result WHERE id = ?";
    struct reader reader = {.store = store, .arena = arena};
    *record = (struct record){.sequence = sequence};
    struct loading loading = {.record = record};
    int64_t id = find_result(store, run, sequence, err);
    enum status status = read_rows(&reader, head, id, read_head, &loading, err);
    if (status == STATUS_OK && !loading.id)
        status = FAIL(err, STATUS_FAILED, "%s: there is no result %d of this run", store->path,
                      sequence);
    if (status == STATUS_OK)
        status = load_parts(&reader, &loading, err);
    if (status != STATUS_OK) {
        free(loading.samples);
        return status;
    }
    record->ops = loading.ops;
    record->metrics = loading.metrics;
    record->visits = loading.visits;
    record->samples = loading.samples;
    return STATUS_OK;
}
