/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging another database. The other file may come from anywhere: before a row of it is read, its
 * tables must be ours word for word, its pages sound, its references resolved; then STRICT tables
 * and CHECKs of our own judge every value once more. Everything happens in one transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/registry.h"
#include "results/sqlite.h"
#include "results/store.h"

enum { PATH_BYTES = 4096 };

/* Ids of the other file and of ours, side by side. */
static const char maps[] =
    "CREATE TEMP TABLE IF NOT EXISTS run_map (theirs INTEGER PRIMARY KEY, ours INTEGER);"
    "CREATE TEMP TABLE IF NOT EXISTS env_map (theirs INTEGER PRIMARY KEY, ours INTEGER);"
    "CREATE TEMP TABLE IF NOT EXISTS result_map (theirs INTEGER PRIMARY KEY, run INTEGER,"
    "                                            sequence INTEGER, ours INTEGER);"
    "DELETE FROM run_map; DELETE FROM env_map; DELETE FROM result_map";

static const char *const steps[] = {
    "INSERT INTO host (uid, label) SELECT uid, label FROM other.host WHERE true "
    "ON CONFLICT (uid) DO NOTHING",

    /* Facts of sets that are new here; equal hashes mean equal facts. */
    "INSERT INTO env_map (theirs) SELECT id FROM other.env_set AS o "
    "WHERE NOT EXISTS (SELECT 1 FROM main.env_set AS m WHERE m.hash = o.hash)",
    "INSERT INTO env_set (hash) SELECT o.hash FROM env_map JOIN other.env_set AS o ON o.id = "
    "theirs",
    "UPDATE env_map SET ours = (SELECT m.id FROM other.env_set AS o "
    "JOIN main.env_set AS m ON m.hash = o.hash WHERE o.id = theirs)",
    "INSERT INTO env_fact (env_set, category, key, value, unit, source, class, status) "
    "SELECT e.ours, f.category, f.key, f.value, f.unit, f.source, f.class, f.status "
    "FROM env_map AS e JOIN other.env_fact AS f ON f.env_set = e.theirs",

    "INSERT INTO build (uid, version, git, config, compiler, flags, features) "
    "SELECT uid, version, git, config, compiler, flags, features FROM other.build WHERE true "
    "ON CONFLICT (uid) DO NOTHING",

    "INSERT INTO point (key, canonical, workload, params, domain, mode, device, precision, batch, "
    "threads, scenario, cache, providers) "
    "SELECT key, canonical, workload, params, domain, mode, device, precision, batch, threads, "
    "scenario, cache, providers FROM other.point AS o "
    "WHERE NOT EXISTS (SELECT 1 FROM main.point AS m "
    "                  WHERE m.key = o.key AND m.canonical = o.canonical)",

    "INSERT INTO run (uuid, host, env_set, build, command, suite, suite_text, plan_hash, planned, "
    "rounds, order_seed, turns_uuid, started_utc, ended_utc, order_key, branch, tag, state, "
    "verdict, reason) "
    "SELECT o.uuid, (SELECT m.id FROM main.host AS m JOIN other.host AS h ON h.uid = m.uid "
    "                WHERE h.id = o.host), "
    "(SELECT m.id FROM main.env_set AS m JOIN other.env_set AS e ON e.hash = m.hash "
    " WHERE e.id = o.env_set), "
    "(SELECT m.id FROM main.build AS m JOIN other.build AS b ON b.uid = m.uid "
    " WHERE b.id = o.build), "
    "command, suite, suite_text, plan_hash, planned, rounds, order_seed, turns_uuid, started_utc, "
    "ended_utc, order_key, branch, tag, state, verdict, reason FROM other.run AS o WHERE true "
    "ON CONFLICT (uuid) DO NOTHING",
    "INSERT INTO run_map (theirs, ours) SELECT o.id, m.id FROM other.run AS o "
    "JOIN main.run AS m ON m.uuid = o.uuid",
    /* A run that goes on in a spool has points there with more visits than here. What an ended run
     * has stays. */
    "DELETE FROM result WHERE id IN (SELECT m.id FROM run_map AS r "
    "JOIN main.run AS u ON u.id = r.ours AND u.state <> 'finished' "
    "JOIN main.result AS m ON m.run = r.ours "
    "JOIN other.result AS o ON o.run = r.theirs AND o.sequence = m.sequence "
    "WHERE (SELECT count(*) FROM other.visit AS v WHERE v.result = o.id) "
    "    > (SELECT count(*) FROM main.visit AS v WHERE v.result = m.id))",
    /* A run that continued in a spool ended there. */
    "UPDATE run SET (ended_utc, state, verdict, reason) = "
    "(SELECT o.ended_utc, o.state, o.verdict, o.reason FROM other.run AS o "
    " WHERE o.uuid = run.uuid) "
    "WHERE EXISTS (SELECT 1 FROM other.run AS o WHERE o.uuid = run.uuid AND "
    "(run.state = 'running' AND o.state <> 'running' "
    " OR run.state = 'interrupted' AND o.state = 'finished'))",
    "INSERT INTO run_fact (run, phase, category, key, value, unit, source, status) "
    "SELECT r.ours, phase, category, key, value, unit, source, status "
    "FROM run_map AS r JOIN other.run_fact AS f ON f.run = r.theirs WHERE true "
    "ON CONFLICT (run, phase, category, key) DO NOTHING",

    "INSERT INTO result_map (theirs, run, sequence) SELECT o.id, r.ours, o.sequence "
    "FROM other.result AS o JOIN run_map AS r ON r.theirs = o.run "
    "WHERE NOT EXISTS (SELECT 1 FROM main.result AS m "
    "                  WHERE m.run = r.ours AND m.sequence = o.sequence)",
    "INSERT INTO result (run, sequence, point, status, verdict, reason, verify_error, "
    "verify_bound, verify_how, stop_reason, started_utc, wall_s, reproduce) "
    "SELECT n.run, o.sequence, (SELECT m.id FROM main.point AS m "
    "                           JOIN other.point AS p ON p.key = m.key WHERE p.id = o.point), "
    "status, verdict, reason, verify_error, verify_bound, verify_how, stop_reason, started_utc, "
    "wall_s, reproduce FROM result_map AS n JOIN other.result AS o ON o.id = n.theirs "
    "ORDER BY n.theirs",
    "UPDATE result_map SET ours = (SELECT m.id FROM main.result AS m "
    "WHERE m.run = result_map.run AND m.sequence = result_map.sequence)",
    "INSERT INTO op (result, idx, name, kind, shape, kernel, provider) "
    "SELECT n.ours, idx, name, kind, shape, kernel, provider FROM result_map AS n "
    "CROSS JOIN other.op AS o ON o.result = n.theirs ORDER BY n.theirs, idx",
    "INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n, min, "
    "q1, q3, max, mad, ci_low, ci_high) "
    "SELECT n.ours, op, name, unit, source, better, value, reason, formula, n, min, q1, q3, max, "
    "mad, ci_low, ci_high FROM other.metric AS o JOIN result_map AS n ON n.theirs = o.result "
    "ORDER BY o.id",
    "INSERT INTO sample (result, idx, visit, phase, time_ns, queue_ns, context_switches, "
    "migrations, page_faults, steal_ns, clock_hz) "
    "SELECT n.ours, idx, visit, phase, time_ns, queue_ns, context_switches, migrations, "
    "page_faults, "
    "steal_ns, clock_hz FROM result_map AS n CROSS JOIN other.sample AS o ON o.result = n.theirs "
    "ORDER BY n.theirs, idx",
    "INSERT INTO visit (result, round, started_utc, samples, median_s, ci_low_s, ci_high_s, "
    "steal_share, wait_share, clock_hz, reason) "
    "SELECT n.ours, round, started_utc, samples, median_s, ci_low_s, ci_high_s, steal_share, "
    "wait_share, clock_hz, reason FROM result_map AS n "
    "CROSS JOIN other.visit AS o ON o.result = n.theirs ORDER BY n.theirs, round",
    "INSERT INTO level (result, round, name, unit, better, value, reason) "
    "SELECT n.ours, round, name, unit, better, value, reason FROM result_map AS n "
    "CROSS JOIN other.level AS o ON o.result = n.theirs ORDER BY n.theirs, round, name",

    /* How often a point has ended the process counts until a visit of it is stored: what was
     * counted before a visit that comes from there is over, and so is what was counted there before
     * one that is stored here. */
    "DELETE FROM attempt WHERE (run, sequence) IN (SELECT run, sequence FROM result_map)",
    "INSERT INTO attempt (run, sequence, count, started_utc) "
    "SELECT r.ours, a.sequence, a.count, a.started_utc FROM other.attempt AS a "
    "JOIN run_map AS r ON r.theirs = a.run "
    "JOIN main.run AS u ON u.id = r.ours AND u.state <> 'finished' "
    "LEFT JOIN main.result AS m ON m.run = r.ours AND m.sequence = a.sequence "
    "LEFT JOIN other.result AS o ON o.run = a.run AND o.sequence = a.sequence "
    "WHERE (SELECT count(*) FROM main.visit AS v WHERE v.result = m.id) "
    "   <= (SELECT count(*) FROM other.visit AS v WHERE v.result = o.id) "
    "ON CONFLICT (run, sequence) DO UPDATE SET count = max(count, excluded.count), "
    "started_utc = max(started_utc, excluded.started_utc)",

    "INSERT INTO ceiling (run, device, kind, name, level, precision, isa, pattern, threads, "
    "working_set_bytes, value, unit, reason, how, n, min, max, clock_hz) "
    "SELECT r.ours, device, kind, name, level, precision, isa, pattern, threads, "
    "working_set_bytes, value, unit, reason, how, n, min, max, clock_hz "
    "FROM other.ceiling AS o JOIN run_map AS r ON r.theirs = o.run WHERE true "
    "ON CONFLICT (run, device, name, threads) DO NOTHING",
    "INSERT INTO baseline (name, run_uuid, note, created_utc) "
    "SELECT name, run_uuid, note, created_utc FROM other.baseline WHERE true "
    "ON CONFLICT (name) DO NOTHING",
};

/* Each must give 0. */
static const struct {
    const char *sql, *what;
} demands[] = {
    {"SELECT count(*) FROM (SELECT type, name, tbl_name, sql FROM main.sqlite_schema "
     "WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~' "
     "EXCEPT SELECT type, name, tbl_name, sql FROM other.sqlite_schema)",
     "its tables are not those of its version"},
    {"SELECT count(*) FROM other.sqlite_schema WHERE type NOT IN ('table', 'index')",
     "it holds views or triggers, which no database of results has"},
    /* No number of errors as first argument: SQLite 3.46 takes it for the name of a table. */
    {"SELECT count(*) FROM (SELECT 1 FROM pragma_integrity_check(NULL, 'other') "
     "WHERE integrity_check <> 'ok' LIMIT 1)",
     "its pages are damaged or hold values of a wrong kind"},
    {"SELECT count(*) FROM (SELECT 1 FROM pragma_foreign_key_check(NULL, 'other') LIMIT 1)",
     "rows refer to rows that are not there"},
    {"SELECT count(*) FROM other.point AS o JOIN main.point AS m ON m.key = o.key "
     "WHERE m.canonical <> o.canonical",
     "one of its points has the key of another point here"},
    {"SELECT count(*) FROM other.point AS o JOIN main.point AS m ON m.canonical = o.canonical "
     "WHERE m.key <> o.key",
     "one of its points has another key here"},
};

static enum status check_other(struct store *store, const char *other, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(demands); k++) {
        int64_t count;
        if (sql_integer(store, demands[k].sql, &count, err))
            return error_context(err, "reading %s", other);
        if (count)
            return FAIL(err, STATUS_FAILED, "%s: not taken in: %s", other, demands[k].what);
    }
    return STATUS_OK;
}

static enum status count_new(struct store *store, struct ingest_counts *counts, struct error *err)
{
    TRY(sql_integer(store, "SELECT count(*) FROM result_map", &counts->results_new, err));
    return sql_integer(store,
                       "SELECT count(*) FROM result_map AS n "
                       "CROSS JOIN other.sample AS o ON o.result = n.theirs",
                       &counts->samples_new, err);
}

static enum status copy_rows(struct store *store, struct ingest_counts *counts, struct error *err)
{
    int64_t before, theirs;
    TRY(sql_exec(store, maps, "taking in results", err));
    TRY(sql_integer(store, "SELECT count(*) FROM main.run", &before, err));
    for (int k = 0; k < ARRAY_COUNT(steps); k++)
        TRY(sql_exec(store, steps[k], "taking in results", err));
    TRY(sql_integer(store, "SELECT count(*) FROM main.run", &counts->runs_new, err));
    TRY(sql_integer(store, "SELECT count(*) FROM other.run", &theirs, err));
    counts->runs_new -= before;
    counts->runs_known = theirs - counts->runs_new;
    return count_new(store, counts, err);
}

static enum status ingest_attached(struct store *store, const char *other,
                                   struct ingest_counts *counts, struct error *err)
{
    static const char doing[] = "taking in results";
    struct ingest_counts found = {0};
    TRY(check_other(store, other, err));
    TRY(sql_begin(store, doing, err));
    enum status status = copy_rows(store, &found, err);
    if (status != STATUS_OK)
        error_context(err, "from %s", other);
    status = sql_finish(store, status, doing, err);
    if (status == STATUS_OK)
        *counts = found;
    return status;
}

static enum status attach(struct store *store, const char *path, bool immutable, const char *other,
                          struct error *err)
{
    sqlite3_stmt *statement;
    char *uri = sql_read_only_uri(path, immutable);
    if (!uri)
        return FAIL_NO_MEMORY(err);
    enum status status = sql_prepare(store, "ATTACH ? AS other", &statement, err);
    if (status == STATUS_OK) {
        struct binder b = binder_on(statement);
        bind_text(&b, uri);
        status = binder_run(store, &b, NULL, "attaching another database", err);
        if (status != STATUS_OK)
            error_context(err, "reading %s", other);
    }
    sqlite3_finalize(statement);
    sqlite3_free(uri);
    return status;
}

/* ---- older files ---- */

static enum status copy_pages(struct store *from, struct store *to, struct error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to->db, "main", from->db, "main");
    if (!backup)
        return sql_fail(to, "copying an older database", err);
    sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK)
        return sql_fail(to, "copying an older database", err);
    return STATUS_OK;
}

/* The other file is not changed: a copy of it is migrated to our version. */
static enum status migrate_copy(struct store *old, const char *copy, const struct embedded *files,
                                struct error *err)
{
    struct store to = {.path = old->path};
    enum status status = STATUS_OK;
    if (sqlite3_open(copy, &to.db) != SQLITE_OK)
        status = sql_fail(&to, "copying an older database", err);
    if (status == STATUS_OK)
        status = copy_pages(old, &to, err);
    if (status == STATUS_OK)
        status = migrate(&to, files, err);
    sqlite3_close(to.db);
    return status;
}

/* Opens the other one for a look: who made it, which version. copy: "" unless one was made. */
static enum status look_at(struct store *store, const char *other, char *copy, bool *immutable,
                           struct error *err)
{
    struct open_how how = {.busy_ms = store->busy_ms, .as_is = true, .code = &store->last_code};
    struct store *theirs;
    bool current = true;
    const char *tmp = getenv("TMPDIR");
    TRY(store_open_how(other, &how, &theirs, err));
    *immutable = theirs->immutable;
    struct embedded *files = migrate_files();
    enum status status = files ? migrate_check(theirs, files, &current, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK && !current) {
        snprintf(copy, PATH_BYTES, "%s/ridge-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        int fd = mkstemp(copy);
        if (fd < 0)
            status = FAIL(err, STATUS_FAILED, "%s: no room to copy an older database", copy);
        else
            close(fd);
        if (status == STATUS_OK)
            status = migrate_copy(theirs, copy, files, err);
    }
    free(files);
    store_close(theirs);
    return status;
}

static enum status must_differ(struct store *store, const char *other, struct error *err)
{
    struct stat a, b;
    if (stat(store->path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return FAIL(err, STATUS_FAILED, "%s: this is the database itself", other);
    return STATUS_OK;
}

enum status store_ingest(struct store *store, const char *other, struct ingest_counts *counts,
                         struct error *err)
{
    char copy[PATH_BYTES] = "";
    bool immutable = false;
    struct error local = {0};
    err = err ? err : &local;
    *counts = (struct ingest_counts){0};
    store->last_code = SQLITE_OK;
    TRY(must_differ(store, other, err));
    enum status status = look_at(store, other, copy, &immutable, err);
    if (status == STATUS_OK)
        status = attach(store, copy[0] ? copy : other, immutable && !copy[0], other, err);
    if (status == STATUS_OK) {
        status = ingest_attached(store, other, counts, err);
        sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
    }
    if (copy[0])
        unlink(copy);
    return status;
}
