/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of made records: sums and gaps to the nanosecond, and a file that is JSON. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "profilers/lib/trace.h"
#include "tests/lib/unit.h"

static struct trace_record record(enum trace_kind kind, uint64_t start, uint64_t end)
{
    return (struct trace_record){
        .kind = kind, .start_ns = start, .end_ns = end, .name = "work", .stream = 3};
}

static void add(struct trace *trace, enum trace_kind kind, uint64_t start, uint64_t end)
{
    struct trace_record r = record(kind, start, end);
    trace_add(trace, &r);
}

TEST(nothing_is_nothing)
{
    struct trace trace = {.count = 0};
    trace_sort(&trace);
    struct trace_summary s = trace_summarise(&trace);
    assert_true(s.kernels == 0 && s.busy_ns == 0 && s.gap_ns == 0 && s.gaps == 0);
    trace_release(&trace);
}

/* In any order; one inside of another, two that touch, two that overlap, gaps of 1 and of 100. */
TEST(gaps_are_exact)
{
    struct trace trace = {.count = 0};
    add(&trace, TRACE_KERNEL, 1250, 1300);
    add(&trace, TRACE_KERNEL, 1000, 1100);
    add(&trace, TRACE_KERNEL, 1020, 1030);  /* inside */
    add(&trace, TRACE_COPY, 1100, 1120);    /* touches */
    add(&trace, TRACE_KERNEL, 1110, 1149);  /* overlaps by 10 */
    add(&trace, TRACE_SET, 1150, 1150);     /* takes no time, but splits the gap */
    add(&trace, TRACE_OVERHEAD, 900, 2000); /* is on the host */
    trace_sort(&trace);
    struct trace_summary s = trace_summarise(&trace);
    assert_int_equal(s.kernels, 4);
    assert_int_equal(s.kernel_ns, 100 + 10 + 39 + 50);
    assert_int_equal(s.copies, 1);
    assert_int_equal(s.copy_ns, 20);
    assert_int_equal(s.sets, 1);
    assert_int_equal(s.busy_ns, 149 + 50);
    assert_int_equal(s.gaps, 2);
    assert_int_equal(s.gap_ns, 101);
    assert_int_equal(s.longest_gap_ns, 100);
    assert_int_equal(s.busy_ns + s.gap_ns, 300); /* from the first start to the last end */
    assert_int_equal(s.overhead_ns, 1100);
    trace_release(&trace);
}

/* Against a count per nanosecond. */
TEST(gaps_of_random_records)
{
    enum { LONG = 2000, RECORDS = 60, ROUNDS = 200 };
    uint64_t seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        bool busy[LONG] = {false};
        uint64_t first = LONG, last = 0, sum = 0;
        struct trace trace = {.count = 0};
        for (int k = 0; k < RECORDS; k++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            uint64_t start = 1 + (seed >> 33) % (LONG - 40), end = start + 1 + (seed >> 50) % 30;
            add(&trace, TRACE_KERNEL, start, end);
            first = start < first ? start : first;
            last = end > last ? end : last;
            for (uint64_t t = start; t < end; t++)
                busy[t] = true;
        }
        for (uint64_t t = first; t < last; t++)
            sum += busy[t];
        trace_sort(&trace);
        struct trace_summary s = trace_summarise(&trace);
        assert_int_equal(s.busy_ns, sum);
        assert_int_equal(s.gap_ns, last - first - sum);
        trace_release(&trace);
    }
}

TEST(records_without_times_are_lost)
{
    struct trace trace = {.count = 0};
    add(&trace, TRACE_KERNEL, 0, 0);     /* the device had no place for it */
    add(&trace, TRACE_KERNEL, 200, 100); /* reversed */
    add(&trace, TRACE_KERNEL, 100, 200);
    add(&trace, TRACE_KERNEL, 0, 200); /* its start was not reported */
    assert_int_equal(trace.count, 1);
    assert_int_equal(trace.untimed, 3);
    assert_non_null(strstr(trace_summarise(&trace).doubt, "no time"));
    trace_release(&trace);
}

/* A record of another clock lies days from the others: its sums would be nonsense. */
TEST(two_clocks_make_no_sum)
{
    static const uint64_t second = 1000000000, now = 1700000000000000000;
    const struct {
        uint64_t start, end;
        bool believed;
    } others[] = {{now + 59 * second, now + 60 * second, true},
                  {now + 62 * second, now + 63 * second, false},
                  {now - 100000 * second, now - 99999 * second, false},
                  {now - 100000 * second, now + second, false}};
    for (int k = 0; k < ARRAY_COUNT(others); k++) {
        struct trace trace = {.count = 0};
        add(&trace, TRACE_KERNEL, now, now + second);
        add(&trace, TRACE_KERNEL, others[k].start, others[k].end);
        trace_sort(&trace);
        const char *doubt = trace_summarise(&trace).doubt;
        assert_true(others[k].believed ? !doubt[0] : strstr(doubt, "two clocks") != NULL);
        trace_release(&trace);
    }
}

/* ---- the file ---- */

static char *written(const struct trace *trace)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(trace_write(trace, file));
    fclose(file);
    return text;
}

/* SQLite is the judge of the JSON. */
static void check(const char *json, const char *expression, const char *expected)
{
    sqlite3 *db;
    sqlite3_stmt *query;
    char sql[512];
    snprintf(sql, sizeof(sql), "WITH t AS (SELECT ?1 AS j) SELECT %s FROM t", expression);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &query, NULL), SQLITE_OK);
    sqlite3_bind_text(query, 1, json, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(query, 0);
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s is %s, not %s", expression, text ? text : "NULL", expected);
    sqlite3_finalize(query);
    sqlite3_close(db);
}

TEST(the_file_is_json)
{
    struct trace trace = {.count = 0};
    struct trace_record kernel = record(TRACE_KERNEL, 5000000001, 5000012345);
    struct trace_record copy = record(TRACE_COPY, 5000000000, 5000000500);
    kernel.grid[0] = 132;
    kernel.block[0] = 256;
    kernel.registers = 168;
    kernel.device = 1;
    snprintf(kernel.name, sizeof(kernel.name), "gemm<\"a\\b\", \n>");
    copy.bytes = 1 << 20;
    trace_add(&trace, &kernel);
    trace_add(&trace, &copy);
    add(&trace, TRACE_OVERHEAD, 5000000000, 5000001000);
    trace_sort(&trace);
    char *json = written(&trace);
    check(json, "json_valid(j)", "1");
    /* Three processes have names: the host and two GPUs; then three records. */
    check(json, "json_array_length(j, '$.traceEvents')", "6");
    check(json, "json_extract(j, '$.traceEvents[0].args.name')", "host");
    check(json, "json_extract(j, '$.traceEvents[2].args.name')", "GPU 1");
    check(json, "json_extract(j, '$.traceEvents[5].name')", kernel.name);
    check(json, "json_extract(j, '$.traceEvents[5].ph')", "X");
    check(json, "json_extract(j, '$.traceEvents[5].ts') = 0.001", "1");
    check(json, "json_extract(j, '$.traceEvents[5].dur') = 12.344", "1");
    check(json, "json_extract(j, '$.traceEvents[5].pid')", "1");
    check(json, "json_extract(j, '$.traceEvents[5].args.grid[0]')", "132");
    check(json, "json_extract(j, '$.traceEvents[3].args.bytes')", "1048576");
    check(json, "json_extract(j, '$.traceEvents[4].cat')", "overhead");
    free(json);
    trace_release(&trace);
}

TEST(an_empty_file_is_json_too)
{
    struct trace trace = {.count = 0};
    char *json = written(&trace);
    check(json, "json_valid(j)", "1");
    check(json, "json_array_length(j, '$.traceEvents')", "0");
    free(json);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        setvbuf(full, NULL, _IONBF, 0);
        assert_false(trace_write(&trace, full));
        fclose(full);
    }
}
