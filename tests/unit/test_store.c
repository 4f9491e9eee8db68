/* SPDX-License-Identifier: Apache-2.0
 * What is put into the store is there again, and a file that cannot be used is refused untouched.
 */

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/query.h"
#include "results/sqlite.h"
#include "tests/lib/child.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

static const char uuid_a[] = "aaaaaaaa-0000-4000-8000-000000000001";

/* The database is in a folder that is not yet there. */
static int open_deeper(void **state)
{
    int failed = place_open(state);
    struct place *place = *state;
    if (!failed)
        snprintf(place->db, sizeof(place->db), "%s/out/ridge.db", place->folder);
    return failed;
}

static struct store *open_to_read(const char *path)
{
    struct store *store = NULL;
    MUST(store_open, path, STORE_READ, &store);
    return store;
}

/* A database with one finished run of `results` results. */
static void fill(const char *path, const char *uuid, int results, int64_t samples)
{
    place_fill(path, uuid, 0, 0, results - 1, samples);
}

TEST(what_is_put_is_there)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 3, 20);
    struct store *store = open_to_read(place->db);
    assert_int_equal(sql_count(store, "PRAGMA application_id"), STORE_APPLICATION);
    assert_int_equal(rows_of(store, "result"), 3);
    assert_int_equal(rows_of(store, "op"), 3 * MADE_OPS);
    assert_int_equal(rows_of(store, "sample"), 60);
    assert_int_equal(rows_of(store, "sample WHERE phase = 'time'"), 57);
    assert_int_equal(rows_of(store, "env_fact"), 3);
    assert_int_equal(rows_of(store, "run_fact"), 1);
    assert_int_equal(rows_of(store, "env_fact WHERE value IS NULL"), 1);
    assert_int_equal(rows_of(store, "ceiling WHERE value IS NULL"), 1);
    assert_int_equal(rows_of(store, "metric WHERE value IS NULL AND reason = "
                                    "'perf_event_paranoid is 3'"),
                     3);
    assert_int_equal(rows_of(store, "sample WHERE queue_ns IS NOT NULL"), 0);
    assert_int_equal(rows_of(store, "run WHERE state = 'finished' AND ended_utc > ''"), 1);
    assert_true(run_has(store, 1, 2));
    assert_false(run_has(store, 1, 3));
    double *times;
    int64_t samples;
    MUST(query_samples, store, 1, &times, &samples);
    assert_int_equal(samples, 19);
    assert_float_equal(times[0], 20000919, 0.5); /* 7919 mod 1000 after 20 ms */
    free(times);
    store_close(store);
}

/* At rest and after reading there is one file and nothing beside it. */
TEST(database_is_one_file)
{
    struct place *place = *state;
    char beside[620];
    fill(place->db, uuid_a, 1, 5);
    struct store *store = open_to_read(place->db);
    assert_int_equal(rows_of(store, "run"), 1);
    store_close(store);
    static const char *const endings[] = {"-wal", "-shm", "-journal", ".spool"};
    for (int k = 0; k < 4; k++) {
        snprintf(beside, sizeof(beside), "%s%s", place->db, endings[k]);
        assert_int_not_equal(access(beside, F_OK), 0);
    }
}

TEST(unfinished_run_is_found_and_goes_on)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    struct run_found found;
    int64_t run;
    MUST(run_begin, store, &head, &run);
    put_result(store, run, 1, 0.02, 5);
    MUST(run_find_unfinished, store, head.plan_hash, &found);
    assert_int_equal(found.run, run);
    assert_string_equal(found.uuid, uuid_a);
    MUST(run_end, store, run, false, true, "interrupted by SIGINT");
    MUST(run_find_unfinished, store, head.plan_hash, &found);
    assert_int_equal(found.run, run);
    MUST(run_end, store, run, true, true, "");
    MUST(run_find_unfinished, store, head.plan_hash, &found);
    assert_int_equal(found.run, 0);
    MUST(run_find_unfinished, store, "another", &found);
    assert_int_equal(found.run, 0);
    store_close(store);
}

TEST(same_place_in_the_plan_twice_is_refused_whole)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    struct made_record made;
    int64_t run;
    MUST(run_begin, store, &head, &run);
    put_result(store, run, 0, 0.02, 5);
    assert_int_equal(made_record(&made, 0, 0.02, 5, MADE_OPS), STATUS_OK);
    FAILS(STATUS_FAILED, "UNIQUE", run_put, store, run, &made.record);
    made_release(&made);
    put_result(store, run, 1, 0.02, 5); /* the store is still good */
    assert_int_equal(rows_of(store, "sample"), 10);
    store_close(store);
}

/* The second run of a name was taken for the first, and its points for points that were there. */
TEST(a_uuid_is_never_empty_and_never_there_twice)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0), nameless = made_head("", 0);
    struct run_found found;
    int64_t run, second;
    MUST(run_begin, store, &head, &run);
    FAILS(STATUS_FAILED, "UNIQUE", run_begin, store, &head, &second);
    FAILS(STATUS_FAILED, "CHECK", run_begin, store, &nameless, &second);
    MUST(run_find_uuid, store, uuid_a, &found);
    assert_int_equal(found.run, run);
    MUST(run_find_uuid, store, "another", &found);
    assert_int_equal(found.run, 0);
    store_close(store);
}

/* ---- visits ---- */

static void make_visit(struct visit_record *visit, int round, double median_s)
{
    *visit = (struct visit_record){.round = round,
                                   .started_utc = "2026-01-01T00:00:00.000Z",
                                   .samples = 4,
                                   .median_s = median_s,
                                   .ci_low_s = NAN,
                                   .ci_high_s = NAN,
                                   .steal_share = 0.5,
                                   .wait_share = NAN,
                                   .clock_hz = 3e9,
                                   .reason = round == 1 ? "set apart: made" : "",
                                   .levels = {{"hand_over", "s", BETTER_LOWER, 1e-6, ""},
                                              {"dram_read", "B/s", BETTER_HIGHER, NAN, "small"}},
                                   .level_count = 2};
}

TEST(a_result_is_replaced_by_itself_with_more_visits_and_read_back)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    struct visit_record visits[2];
    struct made_record made;
    struct arena arena = {0};
    struct record back;
    int64_t run;
    head.rounds = 2;
    MUST(run_begin, store, &head, &run);
    assert_int_equal(made_record(&made, 0, 0.02, 8, MADE_OPS), STATUS_OK);
    made.record.visits = visits;
    for (int v = 0; v < 2; v++) {
        make_visit(&visits[v], v, 0.02 + v);
        for (int k = 0; k < 4; k++)
            made.samples[4 * v + k].visit = v;
        made.record.visit_count = v + 1;
        made.record.sample_count = 4 * (v + 1);
        assert_false(run_has_all(store, run, 0, 2));
        MUST(run_put, store, run, &made.record);
        assert_int_equal(rows_of(store, "result"), 1);
        assert_int_equal(rows_of(store, "sample"), 4 * (v + 1));
        assert_int_equal(sql_count(store, "SELECT id FROM result"), 1);
    }
    assert_true(run_has_all(store, run, 0, 2));
    made.record.visit_count = 1; /* what is there has more */
    assert_int_equal(run_put(store, run, &made.record, &place->err), STATUS_FAILED);
    MUST(run_load, store, run, 0, &arena, &back);
    assert_int_equal(back.visit_count, 2);
    assert_int_equal(back.sample_count, 8);
    assert_int_equal(back.samples[7].visit, 1);
    assert_int_equal(back.samples[7].time_ns, made.samples[7].time_ns);
    assert_int_equal(back.samples[7].queue_ns, RECORD_NONE);
    assert_int_equal(back.op_count, MADE_OPS);
    assert_string_equal(back.ops[1].kernel, made.ops[1].kernel);
    assert_int_equal(back.metric_count, made.record.metric_count);
    for (int k = 0; k < back.metric_count; k++) {
        assert_string_equal(back.metrics[k].name, made.metrics[k].name);
        assert_int_equal(back.metrics[k].op, made.metrics[k].op);
        assert_int_equal(isnan(back.metrics[k].value), isnan(made.metrics[k].value));
    }
    assert_string_equal(back.visits[1].reason, "set apart: made");
    assert_true(isnan(back.visits[1].wait_share) && back.visits[1].median_s == 1.02);
    assert_int_equal(back.visits[0].level_count, 2);
    assert_string_equal(back.visits[0].levels[0].name, "dram_read"); /* by name */
    assert_true(isnan(back.visits[0].levels[0].value) && back.visits[0].levels[1].value == 1e-6);
    free((void *)(uintptr_t)back.samples);
    assert_int_equal(run_load(store, run, 7, &arena, &back, &place->err), STATUS_FAILED);
    arena_release(&arena);
    made_release(&made);
    store_close(store);
}

/* ---- files that are not ours, not good or not now ---- */

static void refuse(struct place *place, const char *path, enum store_mode mode, const char *why)
{
    struct store *store = NULL;
    assert_int_equal(store_open(path, mode, &store, &place->err), STATUS_FAILED);
    assert_null(store);
    if (!strstr(place->err.message, why) || !strstr(place->err.message, path))
        fail_msg("\"%s\" does not say \"%s\"", place->err.message, why);
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

TEST(other_files_are_refused_untouched)
{
    struct place *place = *state;
    char text[100] = "", back[100];
    memset(text, 'x', sizeof(text));
    snprintf(place->db, sizeof(place->db), "%s/file.db", place->folder);
    refuse(place, place->db, STORE_READ, "no such file");
    write_file(place->db, text, sizeof(text));
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
        refuse(place, place->db, mode, "not a database");
    FILE *file = fopen(place->db, "rb");
    assert_int_equal(fread(back, 1, sizeof(back), file), sizeof(text));
    assert_memory_equal(text, back, sizeof(text));
    fclose(file);
    write_file(place->db, text, 0);
    refuse(place, place->db, STORE_READ, "empty");
    refuse(place, place->folder, STORE_WRITE, "no regular file");

    sqlite3 *db;
    unlink(place->db);
    assert_int_equal(sqlite3_open(place->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE photo (id INTEGER)", NULL, NULL, NULL), 0);
    sqlite3_close(db);
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
        refuse(place, place->db, mode, "another program");
}

TEST(newer_version_is_refused)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 1, 5);
    struct store *store = place_store(place->db);
    MUST(sql_exec, store, "PRAGMA user_version = 999", "test");
    store_close(store);
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
        refuse(place, place->db, mode, "newer ridge (schema 999");
}

TEST(damaged_pages_are_an_error_not_a_crash)
{
    struct place *place = *state;
    fill(place->db, uuid_a, 3, 2000);
    int fd = open(place->db, O_WRONLY);
    char junk[4096];
    memset(junk, 0x5a, sizeof(junk));
    for (off_t page = 1; page < 60; page++)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
    close(fd);
    struct store *store = NULL;
    struct grid grid;
    enum status status = store_open(place->db, STORE_READ, &store, &place->err);
    if (status == STATUS_OK)
        status = query_view(store, "results", NULL, 0, &grid, &place->err);
    assert_int_equal(status, STATUS_FAILED);
    assert_non_null(strstr(place->err.message, "damaged"));
    store_close(store);
}

static void read_only_file_is_refused_for_writing(void *context)
{
    struct place *place = context;
    struct store *store;
    if (geteuid() == 0 && setuid(65534)) /* root may write anything */
        _exit(1);
    if (store_open(place->db, STORE_WRITE, &store, &place->err) == STATUS_OK ||
        !strstr(place->err.message, "read-only"))
        _exit(2);
    /* A WAL database in a folder where no log can be made is still readable. */
    if (store_open(place->db, STORE_READ, &store, &place->err) != STATUS_OK) {
        fprintf(stderr, "%s\n", place->err.message);
        _exit(3);
    }
    store_close(store);
}

TEST(read_only_database)
{
    struct place *place = *state;
    char out[600];
    fill(place->db, uuid_a, 1, 5);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(place->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    snprintf(out, sizeof(out), "%s/out", place->folder);
    chmod(place->db, 0444);
    chmod(out, 0555);
    chmod(place->folder, 0755);
    MUST(child_run, read_only_file_is_refused_for_writing, place, 20);
    chmod(out, 0755);
}

TEST(locked_database_is_waited_for_then_named)
{
    struct place *place = *state;
    struct store *a = place_store(place->db);
    struct store *b = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    int64_t run;
    sqlite3_busy_timeout(b->db, 50);
    MUST(sql_begin, a, "test");
    FAILS(STATUS_FAILED, "locked", run_begin, b, &head, &run);
    MUST(sql_finish, a, STATUS_OK, "test");
    MUST(run_begin, b, &head, &run);
    store_close(a);
    store_close(b);
}

TEST(removed_database_is_noticed)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    int64_t run;
    MUST(run_begin, store, &head, &run);
    unlink(place->db);
    FAILS(STATUS_FAILED, "removed", run_end, store, run, true, true, "");
    store_close(store);
}

TEST(names_with_a_meaning_for_sqlite_are_files)
{
    struct place *place = *state;
    char here[600];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(place->folder), 0);
    static const char *const names[] = {":memory:", "file:x.db?mode=memory", "a%41#.db"};
    for (int k = 0; k < 3; k++) {
        fill(names[k], uuid_a, 1, 5);
        struct store *store = open_to_read(names[k]);
        assert_int_equal(rows_of(store, "run"), 1);
        store_close(store);
        assert_int_equal(access(names[k], F_OK), 0);
    }
    assert_int_equal(chdir(here), 0);
}

TEST(migrations_go_forward_whole_or_not_at_all)
{
    struct place *place = *state;
    struct embedded *ours = migrate_files();
    assert_non_null(ours);
    struct embedded files[] = {ours[0],
                               ours[1],
                               {"results/schema/900_add.sql", "CREATE TABLE later (x INTEGER);", 0},
                               {"results/schema/901_bad.sql",
                                "CREATE TABLE worse (x INTEGER); INSERT INTO nowhere VALUES (1);",
                                0},
                               {0}};
    fill(place->db, uuid_a, 1, 5);
    struct store *store = place_store(place->db);
    FAILS(STATUS_FAILED, "901_bad.sql", migrate, store, files);
    assert_int_equal(rows_of(store, "sqlite_schema WHERE name IN "
                                    "('later', 'worse')"),
                     0);
    files[3] = (struct embedded){0};
    MUST(migrate, store, files);
    assert_int_equal(sql_count(store, "PRAGMA user_version"), 900);
    assert_int_equal(rows_of(store, "result"), 1);
    MUST(migrate, store, files); /* nothing left to do */
    store_close(store);
    free(ours);
}

/* A point that begins counts until its result is stored, or it is stopped in good order. */
TEST(attempts_count_until_there_is_a_result)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuid_a, 0);
    int earlier = -1;
    int64_t run;
    MUST(run_begin, store, &head, &run);
    for (int k = 0; k < 3; k++) {
        MUST(run_attempt, store, run, 0, &earlier);
        assert_int_equal(earlier, k);
    }
    MUST(run_attempt, store, run, 1, &earlier);
    assert_int_equal(earlier, 0);
    MUST(run_attempt_withdraw, store, run, 1);
    assert_int_equal(sql_count(store, "SELECT sum(count) FROM attempt"), 3);
    put_result(store, run, 0, 0.02, 10);
    assert_int_equal(rows_of(store, "attempt"), 0);
    store_close(store);
}

/* Ceilings that version 1 kept are still there, and those of devices find room. */
static const char old_run[] =
    "INSERT INTO host VALUES (1, 'aabbccddeeff0011', 'maker'); INSERT INTO env_set VALUES (1, 'e');"
    "INSERT INTO build VALUES (1, 'b', '0', '', '', '', '', '');"
    "INSERT INTO run VALUES (1, 'old', 1, 1, 1, '', '', '', 'p', 1, '2026-01-01T00:00:00.000Z', "
    "NULL,"
    "0, '', '', 'finished', 'valid', '');"
    "INSERT INTO ceiling (run, device, kind, name, level, precision, isa, pattern, threads, value, "
    "unit, reason, how, n) VALUES (1, 'cpu', 'compute', 'old', '', 'f32', '', 'fma', 1, 1e9, "
    "'FLOP/s', '', 'measured', 5)";

TEST(ceilings_of_version_1_are_kept)
{
    struct place *place = *state;
    struct embedded *ours = migrate_files();
    struct embedded first[] = {ours[0], {0}};
    struct store *store = place_store(place->db);
    MUST(sql_exec, store,
         "DROP TABLE ceiling; DROP TABLE baseline; DROP TABLE level; DROP TABLE visit; "
         "DROP TABLE attempt;"
         "DROP TABLE sample; DROP TABLE metric; DROP TABLE op; DROP TABLE result;"
         "DROP TABLE point; DROP TABLE run_fact; DROP TABLE run; DROP TABLE build;"
         "DROP TABLE env_fact; DROP TABLE env_set; DROP TABLE host;"
         "PRAGMA user_version = 0",
         "test");
    MUST(migrate, store, first);
    const int64_t run = 1;
    int made;
    const struct ceiling_record *ceilings = made_ceilings(&made);
    MUST(sql_exec, store, old_run, "test");
    struct ceiling_record launch = {.device = "cuda",
                                    .kind = CEILING_LATENCY,
                                    .name = "launch",
                                    .level = "",
                                    .precision = "",
                                    .isa = "",
                                    .pattern = "",
                                    .value = 2e-6,
                                    .unit = "s",
                                    .reason = ""};
    assert_int_equal(run_put_ceilings(store, run, &launch, 1, &place->err), STATUS_FAILED);
    MUST(migrate, store, ours);
    assert_int_equal(rows_of(store, "ceiling WHERE clock_hz IS NULL"), 1);
    MUST(run_put_ceilings, store, run, ceilings, made);
    assert_int_equal(rows_of(store, "ceiling"), made + 1);
    launch.clock_hz = 1.98e9;
    MUST(run_put_ceilings, store, run, &launch, 1);
    assert_int_equal(rows_of(store, "ceiling WHERE clock_hz = 1.98e9"), 1);
    assert_int_equal(rows_of(store, "ceiling WHERE kind = 'latency'"), 1);
    store_close(store);
    free(ours);
}

const struct unit_fixture unit_fixture = {.before_each = open_deeper, .after_each = place_close};
