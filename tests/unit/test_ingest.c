/* SPDX-License-Identifier: Apache-2.0
 * Merging databases, and spools: nothing twice, nothing lost, nothing hostile. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/sqlite.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/place.h"

static const char uuid_a[] = "aaaaaaaa-0000-4000-8000-000000000001";
static const char uuid_b[] = "bbbbbbbb-0000-4000-8000-000000000002";

static int open_with_spools(void **state)
{
    int failed = place_open(state);
    if (!failed)
        setenv("TMPDIR", ((struct place *)*state)->folder, 1);
    return failed;
}

static int close_with_spools(void **state)
{
    unsetenv("TMPDIR");
    return place_close(state);
}

/* Results first to last of a run. */
static void fill(const char *path, const char *uuid, int first, int last)
{
    place_fill(path, uuid, 1, first, last, 10);
}

static struct ingest_counts ingest(struct place *place, struct store *store)
{
    struct ingest_counts counts;
    MUST(store_ingest, store, place->other, &counts);
    return counts;
}

TEST(twice_is_the_same_as_once)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 0, 1);
    fill(place->other, uuid_b, 0, 2);
    struct store *store = place_store(place->db);
    struct ingest_counts counts = ingest(place, store);
    assert_int_equal(counts.runs_new, 1);
    assert_int_equal(counts.runs_known, 0);
    assert_int_equal(counts.results_new, 3);
    assert_int_equal(counts.samples_new, 30);
    counts = ingest(place, store);
    assert_int_equal(counts.runs_new + counts.results_new + counts.samples_new, 0);
    assert_int_equal(counts.runs_known, 1);
    /* Same machine, build and points: no copies of them. */
    assert_int_equal(rows_of(store, "host"), 1);
    assert_int_equal(rows_of(store, "env_set"), 1);
    assert_int_equal(rows_of(store, "env_fact"), 3);
    assert_int_equal(rows_of(store, "build"), 1);
    assert_int_equal(rows_of(store, "point"), 3);
    assert_int_equal(rows_of(store, "result"), 5);
    assert_int_equal(rows_of(store, "sample"), 50);
    assert_int_equal(rows_of(store, "op"), 5 * MADE_OPS);
    assert_int_equal(rows_of(store, "ceiling"), 12);
    assert_int_equal(rows_of(store, "run_fact"), 2);
    assert_int_equal(rows_of(store, "pragma_foreign_key_check"), 0);
    store_close(store);
}

/* All that is stored, without ids, in one number of rows that only one of two has. */
TEST(copy_is_equal)
{
    struct place *place = *state;
    fill(place->other, uuid_a, 0, 2);
    struct store *store = place_store(place->db);
    ingest(place, store);
    char sql[800];
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS o", place->other);
    MUST(sql_exec, store, sql, "test");
    static const char *const tables[] = {"host",     "env_fact", "build",  "run",
                                         "run_fact", "point",    "result", "op",
                                         "metric",   "sample",   "ceiling"};
    for (int k = 0; k < 11; k++) { /* both files are new, so even the ids are equal */
        snprintf(sql, sizeof(sql),
                 "SELECT (SELECT count(*) FROM (SELECT * FROM main.%s EXCEPT SELECT * FROM o.%s)) "
                 "+ (SELECT count(*) FROM (SELECT * FROM o.%s EXCEPT SELECT * FROM main.%s)) "
                 "+ 1000 * (SELECT count(*) = 0 FROM main.%s)",
                 tables[k], tables[k], tables[k], tables[k], tables[k]);
        assert_int_equal(sql_count(store, sql), 0);
    }
    store_close(store);
}

TEST(run_in_two_pieces_becomes_one)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 0, 1);
    struct store *store = place_store(place->db);
    MUST(run_end, store, 1, false, true, "killed");
    fill(place->other, uuid_a, 1, 2);
    struct ingest_counts counts = ingest(place, store);
    assert_int_equal(counts.runs_known, 1);
    assert_int_equal(counts.results_new, 1);
    assert_int_equal(rows_of(store, "result"), 3);
    assert_int_equal(rows_of(store, "run WHERE state = 'finished'"), 1);
    store_close(store);
}

/* A point that had ended the process twice was begun again once its run was taken in: the count
 * stayed behind. What was counted before a visit that is stored here is over. */
TEST(attempts_are_taken_in_with_their_run)
{
    static const char counts[] = "SELECT group_concat(sequence || ':' || count) = '%s' FROM "
                                 "(SELECT sequence, count FROM attempt ORDER BY sequence)";
    struct place *place = *state;
    char sql[200];
    int earlier;
    fill(place->db, uuid_a, 0, 1);
    fill(place->other, uuid_a, 0, 2);
    struct store *store = place_store(place->db), *other = place_store(place->other);
    MUST(sql_exec, other, "UPDATE run SET state = 'running'; DELETE FROM result WHERE sequence = 0",
         "test");
    MUST(sql_exec, store, "UPDATE run SET state = 'running'", "test");
    MUST(sql_exec, other,
         "INSERT INTO attempt SELECT id, 0, 2, '2026-01-01' FROM run "
         "UNION ALL SELECT id, 3, 2, '2026-01-02' FROM run",
         "test");
    MUST(sql_exec, store,
         "INSERT INTO visit (result, round, started_utc, samples, reason) "
         "SELECT id, 0, '2026-01-01', 1, '' FROM result; "
         "INSERT INTO attempt SELECT id, 2, 1, '2026-01-01' FROM run",
         "test");
    store_close(other);
    for (int time = 0; time < 2; time++) {
        ingest(place, store);
        snprintf(sql, sizeof(sql), counts, "3:2");
        assert_int_equal(sql_count(store, sql), 1);
    }
    MUST(run_attempt, store, 1, 3, &earlier);
    assert_int_equal(earlier, 2);
    ingest(place, store);
    snprintf(sql, sizeof(sql), counts, "3:3");
    assert_int_equal(sql_count(store, sql), 1);
    store_close(store);
}

/* ---- files that are refused ---- */

static void other_sql(struct place *place, const char *sql)
{
    sqlite3 *db;
    char *text = NULL;
    assert_int_equal(sqlite3_open(place->other, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
        fail_msg("%s", text);
    sqlite3_close(db);
}

static void refused(struct place *place, const char *why)
{
    struct ingest_counts counts;
    struct store *store = place_store(place->db);
    assert_int_equal(store_ingest(store, place->other, &counts, &place->err), STATUS_FAILED);
    if (!strstr(place->err.message, why) || !strstr(place->err.message, "other.db"))
        fail_msg("\"%s\" does not say \"%s\"", place->err.message, why);
    assert_int_equal(counts.runs_new, 0);
    assert_int_equal(rows_of(store, "run"), 1);
    assert_int_equal(rows_of(store, "result"), 2);
    store_close(store);
    unlink(place->other);
}

TEST(hostile_files_are_refused)
{
    struct place *place = *state;
    static const struct {
        const char *sql, *why;
    } hostile[] = {
        {"PRAGMA foreign_keys = OFF; DROP TABLE sample", "not those of its version"},
        {"CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END", "views or triggers"},
        {"CREATE VIEW v AS SELECT 1", "views or triggers"},
        {"PRAGMA foreign_keys = OFF; DELETE FROM point WHERE id = 1", "not there"},
        {"UPDATE point SET canonical = 'something else' WHERE id = 1", "key of another"},
        {"UPDATE point SET key = 'ffffffffffffffff' WHERE id = 1", "another key"},
        {"PRAGMA ignore_check_constraints = ON; UPDATE run SET state = 'mad'", "CHECK"},
        {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '')"
         " WHERE name = 'result'",
         "not those of its version"},
        {"PRAGMA application_id = 7", "another program"},
        {"PRAGMA user_version = 999", "newer ridge"},
    };
    fill(place->db, uuid_a, 0, 1);
    for (int k = 0; k < ARRAY_COUNT(hostile); k++) {
        fill(place->other, uuid_b, 0, 1);
        other_sql(place, hostile[k].sql);
        refused(place, hostile[k].why);
    }
    write_file(place->other, "run,time\n");
    refused(place, "not a database");
}

/* Text where a number belongs, written by a program that knows no STRICT. */
TEST(wrong_types_are_refused)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 0, 1);
    fill(place->other, uuid_b, 0, 1);
    other_sql(place, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
                     "'STRICT', '') WHERE name = 'result'");
    other_sql(place, "UPDATE result SET wall_s = 'long'");
    other_sql(place, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || 'STRICT' "
                     "WHERE name = 'result'");
    refused(place, "not taken in");
}

TEST(corrupt_pages_are_refused)
{
    struct place *place = *state;
    struct stat info;
    char junk[512];
    memset(junk, 0xa5, sizeof(junk));
    fill(place->db, uuid_a, 0, 1);
    fill(place->other, uuid_b, 0, 9);
    assert_int_equal(stat(place->other, &info), 0);
    for (off_t page = 1; page < info.st_size / 4096; page += 3) {
        int fd = open(place->other, O_WRONLY);
        assert_int_equal(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
        close(fd);
        refused(place, "");
        fill(place->other, uuid_b, 0, 9);
    }
    assert_int_equal(truncate(place->other, info.st_size / 2), 0);
    refused(place, "");
}

TEST(itself_is_refused)
{
    struct place *place = *state;
    struct ingest_counts counts;
    fill(place->db, uuid_a, 0, 1);
    struct store *store = place_store(place->db);
    FAILS(STATUS_FAILED, "itself", store_ingest, store, place->db, &counts);
    store_close(store);
}

/* A copy goes forward, the file itself stays at its version. */
TEST(older_file_is_migrated_in_a_copy)
{
    struct place *place = *state;
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", STORE_APPLICATION);
    other_sql(place, sql);
    fill(place->db, uuid_a, 0, 1);
    struct store *store = place_store(place->db), *theirs;
    struct open_how how = {.as_is = true};
    assert_int_equal(ingest(place, store).runs_known, 0);
    store_close(store);
    MUST(store_open_how, place->other, &how, &theirs);
    assert_int_equal(sql_count(theirs, "PRAGMA user_version"), 0);
    assert_int_equal(rows_of(theirs, "sqlite_schema"), 0);
    store_close(theirs);
    int files = 0;
    DIR *entries = opendir(place->folder);
    while (readdir(entries))
        files++;
    closedir(entries);
    assert_int_equal(files, 4); /* ".", "..", the two databases */
}

/* ---- spools ---- */

TEST(spool_is_taken_in_when_nobody_uses_it)
{
    struct place *place = *state;
    struct store *main_store = place_store(place->db), *spool;
    struct run_head head = made_head(uuid_a, 1);
    char folder[620];
    int64_t run;
    snprintf(folder, sizeof(folder), "%s.spool", place->db);
    MUST(run_begin, main_store, &head, &run);
    put_result(main_store, run, 0, 0.02, 10);
    MUST(store_open_spool, place->db, uuid_a, &spool);
    MUST(run_begin, spool, &head, &run);
    put_result(spool, run, 1, 0.02, 10);
    store_close(main_store);

    main_store = place_store(place->db); /* the spool is in use */
    assert_int_equal(rows_of(main_store, "result"), 1);
    assert_int_equal(store_spools_left(main_store), 0);
    assert_int_equal(access(folder, F_OK), 0);
    put_result(spool, run, 2, 0.02, 10);
    MUST(run_end, spool, run, true, true, "");
    store_close(spool);
    store_close(main_store);

    main_store = place_store(place->db);
    assert_int_equal(rows_of(main_store, "result"), 3);
    assert_int_equal(rows_of(main_store, "run WHERE state = 'finished'"), 1);
    assert_int_not_equal(access(folder, F_OK), 0);
    store_close(main_store);
}

TEST(spool_finds_another_place)
{
    struct place *place = *state;
    struct store *spool;
    struct run_head head = made_head(uuid_a, 1);
    char folder[620];
    int64_t run;
    snprintf(folder, sizeof(folder), "%s.spool", place->db);
    FILE *file = fopen(folder, "w"); /* in the way of the folder */
    fclose(file);
    MUST(store_open_spool, place->db, uuid_a, &spool);
    assert_null(strstr(store_path(spool), ".db.spool"));
    MUST(run_begin, spool, &head, &run);
    put_result(spool, run, 0, 0.02, 10);
    store_close(spool); /* as if killed: no run_end */
    struct store *store = place_store(place->db);
    assert_int_equal(rows_of(store, "result"), 1);
    assert_int_equal(rows_of(store, "run WHERE state = 'running'"), 1);
    store_close(store);
}

/* The folder of the database goes away under a run: what was put before is gone with it, what comes
 * after is not. */
TEST(vanished_folder_sends_the_run_elsewhere)
{
    struct place *place = *state;
    struct store *store, *spool;
    struct run_head head = made_head(uuid_a, 1);
    struct made_record made;
    char folder[620], path[640], gone[640];
    int64_t run;
    snprintf(folder, sizeof(folder), "%s/out", place->folder);
    snprintf(gone, sizeof(gone), "%s/gone", place->folder);
    snprintf(path, sizeof(path), "%s/ridge.db", folder);
    store = place_store(path);
    MUST(run_begin, store, &head, &run);
    assert_int_equal(rename(folder, gone), 0);
    assert_int_equal(made_record(&made, 0, 0.02, 10, MADE_OPS), STATUS_OK);
    assert_int_equal(run_put(store, run, &made.record, &place->err), STATUS_FAILED);
    store_close(store);
    MUST(store_open_spool, path, uuid_a, &spool);
    MUST(run_begin, spool, &head, &run);
    MUST(run_put, spool, run, &made.record);
    store_close(spool);
    made_release(&made);
    store = place_store(path);
    assert_int_equal(rows_of(store, "result"), 1);
    store_close(store);
}

TEST(damaged_spool_stays_and_is_told)
{
    struct place *place = *state;
    char path[700];
    snprintf(path, sizeof(path), "%s.spool", place->db);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s.spool/%s.db", place->db, uuid_a);
    write_file(path, "this is no database at all, but it is long enough to be looked at");
    struct store *store = place_store(place->db);
    const char *why;
    assert_int_equal(store_spools_left(store), 1);
    assert_string_equal(store_spool_left(store, &why), path);
    assert_non_null(strstr(why, path));
    assert_int_equal(access(path, F_OK), 0);
    store_close(store);
}

const struct unit_fixture unit_fixture = {.before_each = open_with_spools,
                                          .after_each = close_with_spools};
