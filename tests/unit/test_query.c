/* SPDX-License-Identifier: Apache-2.0
 * Views say of made results what follows from their numbers; words find runs. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "results/query.h"
#include "results/sqlite.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

static const char *const uuids[] = {"aaaaaaaa-0000-4000-8000-000000000001",
                                    "aaaabbbb-0000-4000-8000-000000000002",
                                    "cccccccc-0000-4000-8000-000000000003"};

static void near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static int open_run(void **state)
{
    struct run_head head = made_head(uuids[0], 0);
    int count;
    const struct ceiling_record *ceilings = made_ceilings(&count);
    if (place_open(state))
        return -1;
    struct place *place = *state;
    place_begin_run(place, &head);
    MUST(run_put_facts, place->store, 1, "before", head.environment);
    MUST(run_put_ceilings, place->store, place->run, ceilings, count);
    return 0;
}

/* Metrics of the whole that differ from those of made_record. */
struct change {
    const char *name;
    double value;
};

static void put(struct place *place, double time_s, int ops, const struct change *changes)
{
    struct made_record made;
    assert_int_equal(made_record(&made, place->next++, time_s, 30, ops), STATUS_OK);
    for (; changes && changes->name; changes++)
        for (int k = 0; k < made.record.metric_count; k++)
            if (made.metrics[k].op < 0 && strcmp(made.metrics[k].name, changes->name) == 0)
                made.metrics[k].value = changes->value;
    MUST(run_put, place->store, place->run, &made.record);
    made_release(&made);
}

TEST(every_view_runs_on_nothing_and_on_something)
{
    struct place *place = *state;
    for (int round = 0; round < 2; round++) {
        const struct embedded *file = NULL;
        int views = 0;
        while ((file = embedded_next("results/views/", file))) {
            char name[64];
            const char *base = file->path + strlen("results/views/");
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
            assert_int_equal(strncmp(file->text, "-- SPDX", 7), 0);
            assert_non_null(strstr(file->text, "\n-- ")); /* says what it shows */
            if (strchr(name, '/'))
                continue;
            struct grid grid = place_view(place, name, "run", 1);
            assert_true(grid.column_count > 1);
            views++;
        }
        assert_in_range(views, 16, 100);
        put(place, 0.02, MADE_OPS, NULL);
    }
}

TEST(names_carry_units_and_missing_is_null)
{
    struct place *place = *state;
    put(place, 0.02, MADE_OPS, NULL);
    struct grid grid = place_view(place, "results", "run", 1);
    int median = grid_column_find(&grid, "median"), p99 = grid_column_find(&grid, "p99");
    assert_int_equal(grid.row_count, 1);
    assert_string_equal(grid.columns[median].unit, "s");
    assert_string_equal(grid.columns[grid_column_find(&grid, "spec")].unit, "");
    assert_string_equal(grid_text(&grid, 0, "median"), "0.02");
    assert_true(grid_number(&grid, 0, "median") == 0.02);
    assert_int_equal(grid_at(&grid, 0, p99)->kind, CELL_NULL);
    assert_true(isnan(grid_number(&grid, 0, "p99")));
    assert_string_equal(grid_text(&grid, 0, "p99"), "");
    assert_string_equal(grid_text(&grid, 5, "median"), "");
    assert_true(isnan(grid_number(&grid, 0, "no such column")));
    assert_int_equal(grid_column_find(&grid, "no such column"), -1);
    grid = place_view(place, "results", "run", 77);
    assert_int_equal(grid.row_count, 0);
}

/* Threads, precisions, providers and bounds that a suite sweeps: no two points of a picture or a
 * table may have one name. */
TEST(points_of_one_workload_have_labels_of_their_own)
{
    static const struct {
        int threads;
        const char *precision, *providers, *rest;
    } points[] = {{1, "f32", "", ""},
                  {2, "f32", "", ""},
                  {2, "bf16", "", ""},
                  {2, "f32", "native", ""},
                  {2, "f32", "", " bound=0.1 quantile=0.99"},
                  {2, "f32", "", " bound=0.2 quantile=0.99"}};
    static const char *const views[] = {"report_points", "report_results", "report_kinds"};
    struct place *place = *state;
    for (int k = 0; k < ARRAY_COUNT(points); k++) {
        struct made_record made;
        assert_int_equal(made_record(&made, k, 0.02, 30, 1), STATUS_OK);
        made.record.point.threads = points[k].threads;
        made.record.point.precision = points[k].precision;
        made.record.point.providers = points[k].providers;
        snprintf(made.canonical, sizeof(made.canonical),
                 "workload=made threads=%d precision=%s "
                 "providers=%s%s",
                 points[k].threads, points[k].precision, points[k].providers, points[k].rest);
        MUST(run_put, place->store, place->run, &made.record);
        made_release(&made);
    }
    for (int k = 0; k < ARRAY_COUNT(views); k++) {
        struct grid grid = place_view(place, views[k], "run", 1);
        assert_int_equal(grid.row_count, ARRAY_COUNT(points));
        for (int64_t a = 0; a < grid.row_count; a++)
            for (int64_t b = 0; b < a; b++)
                assert_string_not_equal(grid_text(&grid, a, "label"), grid_text(&grid, b, "label"));
    }
    struct grid grid = place_view(place, "results", "run", 1);
    assert_string_equal(grid_text(&grid, 0, "apart"), "");
    assert_string_equal(grid_text(&grid, 5, "apart"), " bound=0.2 quantile=0.99");
}

/* Roofs: 100 GFLOP/s, DRAM 10 GB/s, L3 50 GB/s of 4 MiB. Work: 1 GFLOP, 10 MB unless changed. */
TEST(bounds_follow_the_roofs)
{
    struct place *place = *state;
    static const struct change bytes[] = {{"bytes_compulsory", 1e9}, {NULL, 0}};
    static const struct change cached[] = {
        {"bytes_compulsory", 1e9}, {"arena_bytes", 1e6}, {"weight_bytes", 1e6}, {NULL, 0}};
    static const struct change tiny[] = {{"flops", 1e5}, {"bytes_compulsory", 1e4}, {NULL, 0}};
    static const struct change countless[] = {{"flops", NAN}, {NULL, 0}};
    static const struct {
        double time_s;
        int ops; /* the second of several is Winograd */
        const struct change *changes;
        const char *bound;
        double roof_s;
    } cases[] = {
        {0.011, 1, NULL, "compute", 0.01},        {0.02, 1, NULL, "latency", 0.01},
        {0.005, 1, NULL, "counting error", 0.01}, {0.005, 2, NULL, "compute", 0.01},
        {0.0099, 1, NULL, "compute", 0.01},       {0.11, 1, bytes, "DRAM", 0.1},
        {0.05, 1, bytes, "counting error", 0.1},  {0.021, 1, cached, "cache", 0.02},
        {0.2, 1, cached, "cache", 0.02},          {0.01, 1, cached, "cache", 0.02},
        {40e-6, 1, tiny, "overhead", 1e-6},       {60e-6, 1, tiny, "latency", 1e-6},
        {0.02, 1, countless, "unknown", NAN},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        put(place, cases[k].time_s, cases[k].ops, cases[k].changes);
    struct grid grid = place_view(place, "bounds", "run", 1);
    assert_int_equal(grid.row_count, ARRAY_COUNT(cases));
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        double roof = grid_number(&grid, k, "roof_time");
        assert_string_equal(grid_text(&grid, k, "bound"), cases[k].bound);
        assert_string_equal(grid_text(&grid, k, "largest_cache"), "4194304");
        if (isnan(cases[k].roof_s)) {
            assert_true(isnan(roof));
            assert_string_not_equal(grid_text(&grid, k, "note"), "");
            continue;
        }
        near(roof / cases[k].roof_s, 1, 1e-9);
        near(grid_number(&grid, k, "recoverable"), fmax(cases[k].time_s - cases[k].roof_s, 0),
             1e-12);
    }
    assert_non_null(strstr(grid_text(&grid, 3, "note"), "Winograd"));
}

/* A dilated convolution that leaves out what is padding did 1.7 TFLOP/s on a machine of 0.24. */
TEST(steps_that_do_fewer_operations_than_counted)
{
    struct place *place = *state;
    static const char *const bounds[] = {"counting error", "compute", "compute"};
    put(place, 0.003, ARRAY_COUNT(bounds), NULL);
    struct grid grid = place_view(place, "offenders", "run", 1);
    assert_int_equal(grid.row_count, ARRAY_COUNT(bounds));
    for (int64_t row = 0; row < grid.row_count; row++) {
        int64_t step = (int64_t)grid_number(&grid, row, "step");
        assert_in_range(step, 0, ARRAY_COUNT(bounds) - 1);
        assert_string_equal(grid_text(&grid, row, "bound"), bounds[step]);
    }
}

/* din at batch 32 computes 45 % less than its graph has and reached 110 % of the peak by the
 * graph's FLOPs, which was called a counting error. What passes added is done for the kernels'
 * sake. */
TEST(what_passes_removed_is_no_part_of_the_roof)
{
    static const struct {
        double time_s, by_passes;
        const char *bound;
        double roof_s;
    } cases[] = {{0.0091, -0.45e9, "latency", 0.0055},
                 {0.0055, -0.45e9, "compute", 0.0055},
                 {0.005, -0.45e9, "counting error", 0.0055},
                 {0.02, -0.95e9, "latency", 0.001}, /* 10 MB take longer than the arithmetic */
                 {0.0101, 0.45e9, "compute", 0.01}};
    struct place *place = *state;
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct made_record made;
        assert_int_equal(made_record(&made, place->next++, cases[k].time_s, 30, 1), STATUS_OK);
        made.metrics[made.record.metric_count++] =
            metric_alone(-1, "flops_by_passes", "1", cases[k].by_passes);
        MUST(run_put, place->store, place->run, &made.record);
        made_release(&made);
    }
    struct grid grid = place_view(place, "bounds", "run", 1);
    assert_int_equal(grid.row_count, ARRAY_COUNT(cases));
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        assert_string_equal(grid_text(&grid, k, "bound"), cases[k].bound);
        near(grid_number(&grid, k, "roof_time") / cases[k].roof_s, 1, 1e-9);
        double result = grid_number(&grid, k, "result");
        struct grid history = place_view(place, "report_history", "result", result);
        near(grid_number(&history, 0, "fraction_of_roof"), cases[k].roof_s / cases[k].time_s, 1e-9);
    }
}

/* What the caches hold is a fact of the machine; what they were measured with is a stopgap. */
TEST(size_of_the_cache_comes_from_the_machine)
{
    struct place *place = *state;
    put(place, 0.02, 1, NULL);
    MUST(sql_exec, place->store,
         "INSERT INTO env_fact VALUES "
         "(1, 'topology', 'l2', '2.097152e+06', 'B', 'hwloc', 'identity', 'ok'),"
         "(1, 'topology', 'l3', '33554432', 'B', 'hwloc', 'identity', 'ok'),"
         "(1, 'topology', 'l3_count', '99999999999', '', 'hwloc', 'identity', 'ok')",
         "test");
    struct grid grid = place_view(place, "bounds", "run", 1);
    near(grid_number(&grid, 0, "largest_cache"), 33554432, 0);
    near(grid_number(&grid, 0, "memory_time"), 1e7 / 5e10, 1e-12); /* fits it now */
}

TEST(no_ceiling_is_unknown_not_zero)
{
    struct place *place = *state;
    put(place, 0.02, 1, NULL);
    MUST(sql_exec, place->store, "DELETE FROM ceiling WHERE level = 'DRAM'", "test");
    struct grid grid = place_view(place, "bounds", "run", 1);
    assert_string_equal(grid_text(&grid, 0, "bound"), "unknown");
    assert_non_null(strstr(grid_text(&grid, 0, "note"), "DRAM"));
    assert_true(isnan(grid_number(&grid, 0, "recoverable")));
}

TEST(steps_share_the_time)
{
    struct place *place = *state;
    put(place, 0.02, 6, NULL); /* Conv MatMul Relu Add Conv MatMul */
    struct grid grid = place_view(place, "ops", "result", 1);
    double share = 0;
    assert_int_equal(grid.row_count, 6);
    for (int64_t row = 0; row < 6; row++)
        share += grid_number(&grid, row, "share");
    near(share, 1, 1e-12);
    grid = place_view(place, "breakdown", "result", 1);
    assert_int_equal(grid.row_count, 4);
    assert_string_equal(grid_text(&grid, 0, "kind"), "Conv");
    near(grid_number(&grid, 0, "share"), 2.0 / 6, 1e-12);
    near(grid_number(&grid, 0, "flops"), 2e9 / 6, 1);
    grid = place_view(place, "offenders", "run", 1);
    assert_int_equal(grid.row_count, 6);
    assert_true(grid_number(&grid, 0, "recoverable") >= grid_number(&grid, 5, "recoverable"));
    /* 3.33 MB of 4 MiB: the cache; 1/6 GFLOP at 100 GFLOP/s are 1.67 ms of 3.33 ms. */
    near(grid_number(&grid, 0, "roof_time"), 1e-2 / 6, 1e-9);
    grid = place_view(place, "roofline_ops", "result", 1);
    assert_int_equal(grid.row_count, 6);
    near(grid_number(&grid, 0, "intensity"), 50, 1e-9);
}

TEST(samples_are_sorted_and_thinned)
{
    struct place *place = *state;
    struct made_record made;
    assert_int_equal(made_record(&made, 0, 0.02, 50001, 1), STATUS_OK);
    MUST(run_put, place->store, place->run, &made.record);
    made_release(&made);
    struct grid grid = place_view(place, "latency", "result", 1);
    assert_in_range(grid.row_count, 10000, 11001);
    for (int64_t row = 1; row < grid.row_count; row++) {
        assert_true(grid_number(&grid, row, "time") >= grid_number(&grid, row - 1, "time"));
        assert_true(grid_number(&grid, row, "quantile") > grid_number(&grid, row - 1, "quantile"));
    }
    near(grid_number(&grid, 0, "quantile"), 0.5 / 50000, 1e-12);
    near(grid_number(&grid, grid.row_count - 1, "quantile"), 1 - 0.5 / 50000, 1e-12);
}

/* ---- several runs ---- */

static int64_t begin_run(struct place *place, const struct run_head *head)
{
    int64_t run;
    MUST(run_begin, place->store, head, &run);
    return run;
}

static void finds(struct place *place, const char *word, int64_t expected)
{
    int64_t run;
    if (query_find_run(place->store, word, &run, &place->err) != STATUS_OK)
        fail_msg("%s", place->err.message);
    assert_int_equal(run, expected);
}

static void finds_not(struct place *place, const char *word, const char *why)
{
    int64_t run;
    FAILS(STATUS_FAILED, why, query_find_run, place->store, word, &run);
}

TEST(words_find_runs)
{
    struct place *place = *state;
    struct run_head second = made_head(uuids[1], 1), third = made_head(uuids[2], 2);
    struct build_record build = *third.build;
    snprintf(build.uid, sizeof(build.uid), "9999");
    build.git = "deadbeef0123-dirty";
    second.tag = "nightly";
    third.build = &build;
    begin_run(place, &second);
    begin_run(place, &third);
    MUST(baseline_set, place->store, "release-1", uuids[0], "");
    finds(place, "latest", 3);
    finds(place, "latest~1", 2);
    finds(place, "latest~2", 1);
    finds(place, uuids[1], 2);
    finds(place, "cccc", 3);
    finds(place, "nightly", 2);
    finds(place, "release-1", 1);
    finds(place, "deadbeef", 3);
    finds(place, "abcdef123456", 2); /* the latest of two */
    finds(place, "abcdef1234567890abcdef1234567890abcdef12", 2);
    finds_not(place, "aaaa", "beginning of the uuid of 2 runs");
    finds_not(place, "latest~9", "no run \"latest~9\"");
    finds_not(place, "latest~x", "number");
    finds_not(place, "", "no run");
    finds_not(place, "zzz", "cccccccc");
    struct grid grid = place_view(place, "baselines", "run", 1);
    assert_int_equal(grid.row_count, 1);
    assert_int_equal(grid_number(&grid, 0, "run"), 1);
}

TEST(history_and_differences_of_runs)
{
    struct place *place = *state;
    struct run_head second = made_head(uuids[1], 1);
    struct environment environment = *second.environment;
    struct fact facts[4];
    memcpy(facts, environment.facts, sizeof(facts));
    facts[1].value = "powersave";
    snprintf(environment.hash, sizeof(environment.hash), "other");
    environment.facts = facts;
    second.environment = &environment;
    second.order_key = 5; /* older than the first */
    put(place, 0.02, 1, NULL);
    place->run = begin_run(place, &second);
    place->next = 0;
    put(place, 0.03, 1, NULL);
    const struct query_value point = {"point", "0000000000001000", 0};
    struct grid grid;
    MUST(query_view, place->store, "history", &point, 1, &grid);
    assert_int_equal(grid.row_count, 2);
    near(grid_number(&grid, 0, "median"), 0.03, 1e-12);
    near(grid_number(&grid, 1, "median"), 0.02, 1e-12);
    grid_release(&grid);
    const struct query_value runs[] = {{"a", NULL, 1}, {"b", NULL, 2}};
    MUST(query_view, place->store, "env_diff", runs, 2, &grid);
    assert_int_equal(grid.row_count, 1);
    assert_string_equal(grid_text(&grid, 0, "key"), "governor");
    assert_string_equal(grid_text(&grid, 0, "a"), "performance");
    assert_string_equal(grid_text(&grid, 0, "b"), "powersave");
    grid_release(&grid);
    grid = place_view(place, "environment", "run", 1);
    assert_int_equal(grid.row_count, 4);
    grid = place_view(place, "unavailable", "run", 1);
    assert_int_equal(grid.row_count, 3); /* a counter, a ceiling, a fact */
    assert_string_equal(grid_text(&grid, 0, "reason"), "perf_event_paranoid is 3");
}

TEST(only_reading_and_only_what_is_there)
{
    struct place *place = *state;
    struct grid grid;
    FAILS(STATUS_FAILED, "offenders", query_view, place->store, "no_such", NULL, 0, &grid);
    assert_int_equal(query_sql(place->store, "DELETE FROM run", NULL, 0, &grid, &place->err),
                     STATUS_FAILED);
    assert_int_equal(query_sql(place->store, "SELEC 1", NULL, 0, &grid, &place->err),
                     STATUS_FAILED);
    assert_int_equal(query_sql(place->store, "", NULL, 0, &grid, &place->err), STATUS_FAILED);
    MUST(query_sql, place->store, "SELECT count(*) FROM run", NULL, 0, &grid);
    assert_int_equal(grid_at(&grid, 0, 0)->integer, 1);
    grid_release(&grid);
}

const struct unit_fixture unit_fixture = {.before_each = open_run, .after_each = place_close};
