/* SPDX-License-Identifier: Apache-2.0
 * Every format of every kind of cell: read back by the rules of the format, with jq for JSON. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "results/format.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"

static const char nasty[] = "comma, \"quote\" | pipe\nline \\ back";

struct place {
    char *folder;
    char file[640];
    struct grid grid;
    char *text;
    size_t size;
    struct error err;
};

/* What no measurement should give, but a database may hold. */
static const struct visit_record infinite_visit = {
    .started_utc = "2026-01-01T00:00:00.000Z",
    .samples = 12,
    .median_s = 0.1,
    .ci_low_s = (double)-INFINITY,
    .ci_high_s = (double)INFINITY,
    .steal_share = (double)NAN,
    .wait_share = (double)INFINITY,
    .clock_hz = (double)INFINITY,
    .reason = "",
    .levels = {{.name = "hand_over", .unit = "s", .value = (double)INFINITY, .reason = ""}},
    .level_count = 1};

/* Result 0 with samples, steps and a visit, 1 failed without metrics, 2 with a name full of traps.
 */
static void put_results(struct store *store)
{
    struct run_head head = made_head("aaaaaaaa-0000-4000-8000-000000000001", 0);
    struct made_record made;
    int64_t run;
    MUST(run_begin, store, &head, &run);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(made_record(&made, k, 0.1 + 0.2 * k, 12, 2), STATUS_OK);
        if (k == 0) {
            made.record.visits = &infinite_visit;
            made.record.visit_count = 1;
        }
        if (k == 1) {
            made.record.status = RESULT_FAILED;
            made.record.metric_count = 0;
            made.record.sample_count = 0;
            made.record.reason = "it broke";
        }
        if (k == 2) {
            made.record.point.params = nasty;
            made.record.point.canonical = "workload=made providers= bound=0.1 quantile=0.99";
        }
        MUST(run_put, store, run, &made.record);
        made_release(&made);
    }
}

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    struct store *store;
    char path[600];
    const struct query_value values[] = {{"ops", NULL, 1}, {"samples", NULL, 1}};
    *state = place;
    if (!place || !(place->folder = made_folder()))
        return -1;
    snprintf(path, sizeof(path), "%s/ridge.db", place->folder);
    snprintf(place->file, sizeof(place->file), "%s/output", place->folder);
    MUST(store_open, path, STORE_WRITE, &store);
    put_results(store);
    MUST(query_view, store, "export", values, 2, &place->grid);
    store_close(store);
    return 0;
}

static int place_close(void **state)
{
    struct place *place = *state;
    grid_release(&place->grid);
    free(place->text);
    made_folder_remove(place->folder);
    free(place);
    return 0;
}

static const char *written(struct place *place, const char *name)
{
    const struct format *format = format_find(name);
    assert_non_null(format);
    free(place->text);
    FILE *stream = open_memstream(&place->text, &place->size);
    MUST(format->write, &place->grid, stream);
    fclose(stream);
    FILE *file = fopen(place->file, "wb");
    assert_int_equal(fwrite(place->text, 1, place->size, file), place->size);
    fclose(file);
    return place->text;
}

static void jq(struct place *place, const char *expression)
{
    char command[2048];
    snprintf(command, sizeof(command), "jq -se '%s' '%s' >/dev/null", expression, place->file);
    if (system(command) != 0)
        fail_msg("not true: %s", expression);
}

/* ---- csv ---- */

/* Reads one cell after RFC 4180; returns what follows it and says whether it stood in quotes. */
static const char *csv_cell(const char *at, char *cell, bool *quoted)
{
    *quoted = *at == '"';
    if (!*quoted) {
        size_t length = strcspn(at, ",\r");
        memcpy(cell, at, length);
        cell[length] = 0;
        return at + length;
    }
    for (at++; at[0] != '"' || at[1] == '"'; at++) {
        assert_true(*at != 0);
        at += *at == '"';
        *cell++ = *at;
    }
    *cell = 0;
    return at + 1;
}

TEST(csv_is_rfc_4180_and_holds_every_cell)
{
    struct place *place = *state;
    static char cell[1 << 16];
    const char *at = written(place, "csv");
    bool quoted;
    for (int64_t row = -1; row < place->grid.row_count; row++) {
        for (int k = 0; k < place->grid.column_count; k++) {
            at = csv_cell(at, cell, &quoted);
            const struct cell *expected = grid_at(&place->grid, row, k);
            bool formula = row >= 0 && expected->kind == CELL_TEXT && *expected->text &&
                           strchr("=+-@\t", *expected->text);
            assert_int_equal(formula, cell[0] == '\'');
            assert_string_equal(cell + formula,
                                row < 0 ? place->grid.columns[k].name : expected->text);
            if (row >= 0 && !*cell) /* NULL and "" are not the same */
                assert_int_equal(quoted, expected->kind == CELL_TEXT);
            if (k + 1 < place->grid.column_count)
                assert_int_equal(*at++, ',');
        }
        assert_memory_equal(at, "\r\n", 2);
        at += 2;
    }
    assert_int_equal(*at, 0);
}

/* ---- json ---- */

TEST(json_has_one_object_per_result)
{
    struct place *place = *state;
    written(place, "json");
    jq(place, "length == 1 and (.[0] | length == 3)");
    jq(place, ".[0][0] | .workload == \"made\" and .batch == 32 and .status == \"ok\"");
    jq(place, ".[0][0].metrics[] | select(.metric == \"time_s\" and .step == null) "
              "| .value == 0.1 and .unit == \"s\" and .n == 12 and (.samples_ns | length == 11)");
    jq(place, ".[0][0].metrics | map(select(.step == 1)) | length == 4");
    jq(place, ".[0][0].metrics | map(select(.value == null)) | length == 1 "
              "and .[0].value_reason == \"perf_event_paranoid is 3\"");
    jq(place, ".[0][1] | .status == \"failed\" and .reason == \"it broke\" and .metrics == []");
    jq(place, ".[0][2].params == \"comma, \\\"quote\\\" | pipe\\nline \\\\ back\"");
    jq(place, ".[0] | map(has(\"uuid\") or has(\"samples_ns\")) | any | not");
}

/* SQLite wrote Inf for an infinity in a visit, at which every reader of the document gave up. */
TEST(an_infinity_in_a_visit_is_null)
{
    struct place *place = *state;
    static const char visit[] =
        "length == 1 and (.[0] | .median_s == 0.1 and [.ci_low_s, .ci_high_s, .steal_share, "
        ".wait_share, .clock_hz, .levels[0].value] == [null, null, null, null, null, null])";
    char expression[512];
    written(place, "json");
    snprintf(expression, sizeof(expression), ".[0][0].visits | %s", visit);
    jq(place, expression);
    written(place, "jsonl");
    snprintf(expression, sizeof(expression), ".[0].visits | fromjson | %s", visit);
    jq(place, expression);
}

TEST(jsonl_has_one_line_per_row)
{
    struct place *place = *state;
    char expression[64];
    const char *text = written(place, "jsonl");
    int64_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    assert_int_equal(lines, place->grid.row_count);
    snprintf(expression, sizeof(expression), "length == %d", (int)lines);
    jq(place, expression);
    jq(place, "map(keys) | unique | length == 1");
    jq(place, "map(select(.metric == \"time_s\" and .step == null) | .value) | .[1] > 0.4999");
}

TEST(google_benchmark_has_what_its_tools_read)
{
    struct place *place = *state;
    written(place, "google_benchmark");
    jq(place, ".[0] | has(\"context\") and (.context | has(\"date\") and has(\"host_name\") "
              "and has(\"executable\") and has(\"library_build_type\"))");
    jq(place, "all(.[0].benchmarks[]; has(\"name\") and has(\"run_name\") and has(\"run_type\") "
              "and (.real_time | type == \"number\") and (.cpu_time | type == \"number\") "
              "and .time_unit == \"ns\" and .iterations >= 0 and .repetitions >= 1)");
    jq(place, "[.[0].benchmarks[] | select(.run_type == \"iteration\" and .family_index == 0)] "
              "| length == 11 and all(.[]; .repetitions == 11 and .name == .run_name) "
              "and (map(.repetition_index) == [range(11)]) and .[0].real_time == 100000919");
    jq(place, "[.[0].benchmarks[] | select(.family_index == 0)] as $all "
              "| [$all[] | select(.run_type == \"iteration\").real_time] as $times "
              "| ([$all[] | select(.aggregate_name == \"mean\").real_time][0] "
              "   - ($times | add / length) | fabs) < 1 "
              "and [$all[] | select(.aggregate_name == \"median\").real_time][0] "
              "   == ($times | sort | .[5]) "
              "and [$all[] | select(.aggregate_name == \"stddev\").real_time][0] > 0");
    jq(place, "[.[0].benchmarks[].run_name] | unique | length == 2");
    jq(place, ".[0].context.ridge_failures | length == 1 and .[0].reason == \"it broke\" "
              "and (.[0].name | startswith(\"made/inference/cpu/f32/\"))");
}

/* Two bounds of one server are two points, not repetitions of one. */
TEST(points_that_differ_in_a_rare_word_have_different_names)
{
    struct place *place = *state;
    written(place, "google_benchmark");
    jq(place, "[.[0].benchmarks[].run_name | endswith(\"/threads:2/bound:0.1/quantile:0.99\")] "
              "| any and (all | not)");
    assert_non_null(strstr(written(place, "markdown"), " bound=0.1 quantile=0.99 |"));
    written(place, "json");
    jq(place, ".[0][2].canonical == \"workload=made providers= bound=0.1 quantile=0.99\"");
}

static void set_text(struct place *place, int64_t row, const char *column, char *text)
{
    int64_t at = row * place->grid.column_count + grid_column_find(&place->grid, column);
    place->grid.cells[at].text = text;
}

/* An invalid result was there like any other, for compare.py to rank. */
TEST(google_benchmark_says_what_is_invalid)
{
    static char verdict[] = "invalid", reason[] = "disturbed: 41 % of the CPU time";
    struct place *place = *state;
    written(place, "google_benchmark");
    jq(place, "[.[0].benchmarks[] | select(has(\"label\"))] == []");
    int64_t rows = 1;
    while (!format_starts_result(&place->grid, rows))
        rows++;
    for (int64_t row = 0; row < rows; row++) {
        set_text(place, row, "verdict", verdict);
        set_text(place, row, "reason", reason);
    }
    written(place, "google_benchmark");
    jq(place, "all(.[0].benchmarks[]; .label == (if .family_index == 0 then "
              "\"invalid: disturbed: 41 % of the CPU time\" else null end))");
}

/* Results of one point in several runs were repetitions of one benchmark: 11 and 11 of 11. */
TEST(google_benchmark_tells_runs_apart)
{
    static char other[] = "bbbbbbbb-0000-4000-8000-000000000002";
    struct place *place = *state;
    int64_t first = place->grid.row_count - 1;
    while (!format_starts_result(&place->grid, first))
        first--;
    for (int64_t row = first; row < place->grid.row_count; row++)
        set_text(place, row, "run", other);
    written(place, "google_benchmark");
    jq(place, "[.[0].benchmarks[].run_name | .[-13:]] | unique == [\"/run:aaaaaaaa\", "
              "\"/run:bbbbbbbb\"]");
}

/* compare.py shows names whole, and two that were cut alike would be one. */
TEST(a_long_name_is_whole)
{
    struct place *place = *state;
    char long_name[600];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    for (int64_t row = 0; row < place->grid.row_count; row++) {
        int64_t cell = row * place->grid.column_count + grid_column_find(&place->grid, "params");
        place->grid.cells[cell].text = long_name;
    }
    assert_non_null(strstr(written(place, "google_benchmark"), long_name));
    assert_non_null(strstr(place->text, "/threads:2_median\""));
    assert_non_null(strstr(written(place, "markdown"), long_name));
}

/* ---- openmetrics ---- */

static bool is_name(const char *text, size_t length)
{
    return length > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789") == length;
}

/* The end of {a="b",...}; fails on an unescaped quote or line end. */
static const char *skip_labels(const char *at)
{
    while (*at != '}') {
        at++; /* "{" or "," */
        size_t name = strcspn(at, "=");
        assert_true(is_name(at, name));
        at += name + 1;
        assert_int_equal(*at++, '"');
        for (; *at != '"'; at++) {
            assert_true(*at != 0 && *at != '\n');
            at += *at == '\\';
        }
        at++;
        assert_true(*at == ',' || *at == '}');
    }
    return at + 1;
}

/* Families stand together, begin with TYPE, and a unit is the end of the name. */
TEST(openmetrics_is_valid)
{
    struct place *place = *state;
    char family[160] = "", unit[64], name[128];
    static char seen[1 << 14];
    int values = 0;
    const char *at = written(place, "openmetrics");
    for (; strcmp(at, "# EOF\n") != 0; at = strchr(at, '\n') + 1) {
        assert_non_null(strchr(at, '\n'));
        if (sscanf(at, "# TYPE %127s gauge", name) == 1) {
            snprintf(family, sizeof(family), " %s ", name);
            assert_null(strstr(seen, family)); /* once only */
            snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s", family);
            snprintf(family, sizeof(family), "%s", name);
        } else if (sscanf(at, "# UNIT %127s %63s", name, unit) == 2) {
            assert_string_equal(name, family);
            assert_true(strlen(name) > strlen(unit));
            assert_string_equal(name + strlen(name) - strlen(unit), unit);
        } else if (sscanf(at, "# HELP %127s", name) == 1) {
            assert_string_equal(name, family);
        } else {
            char *end;
            assert_int_equal(strncmp(at, family, strlen(family)), 0);
            at = skip_labels(at + strlen(family));
            assert_int_equal(*at, ' ');
            assert_true(isfinite(strtod(at, &end)));
            assert_int_equal(*end, '\n');
            values++;
        }
    }
    /* 2 results with 7 numbers of the whole, 3 with ridge_result_ok. */
    assert_int_equal(values, 2 * 7 + 3);
    assert_non_null(strstr(place->text, "ridge_time_seconds{"));
    assert_non_null(strstr(place->text, "ridge_arena_bytes{"));
    assert_non_null(strstr(place->text, "ridge_throughput_per_second{"));
    assert_non_null(strstr(place->text, "params=\"comma, \\\"quote\\\" | pipe\\nline \\\\ back\""));
}

TEST(markdown_has_one_line_per_result)
{
    struct place *place = *state;
    const char *text = written(place, "markdown");
    int lines = 0;
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        int bars = 0;
        size_t length = strcspn(at, "\n");
        for (size_t k = 0; k < length; k++)
            bars += at[k] == '|' && (k == 0 || at[k - 1] != '\\');
        if (*at != '|')
            continue;
        assert_int_equal(bars, 13);
        lines++;
    }
    assert_int_equal(lines, 2 + 3);
    assert_non_null(strstr(text, "| valid | 100 | 120 | - |"));
    assert_non_null(strstr(text, "| failed | - |"));
    /* As in `ridge compare --markdown`: nothing of a name is taken for a mark. */
    assert_non_null(strstr(text, "comma, \"quote\" \\| pipe line \\\\ back"));
}

TEST(empty_grid_is_still_a_document)
{
    struct place *place = *state;
    place->grid.row_count = 0;
    for (int k = 0; k < format_count(); k++)
        written(place, format_at(k)->name);
    written(place, "json");
    jq(place, ". == [[]]");
    written(place, "google_benchmark");
    jq(place, ".[0].benchmarks == []");
    assert_int_equal(format_count(), 6);
    assert_null(format_find("cvs"));
}

TEST(full_device_is_an_error)
{
    struct place *place = *state;
    for (int k = 0; k < format_count(); k++) {
        FILE *stream = fopen("/dev/full", "w");
        assert_non_null(stream);
        assert_int_equal(format_at(k)->write(&place->grid, stream, &place->err), STATUS_FAILED);
        assert_non_null(strstr(place->err.message, "No space left"));
        fclose(stream);
    }
}

const struct unit_fixture unit_fixture = {.before_each = place_open, .after_each = place_close};
