/* SPDX-License-Identifier: Apache-2.0
 *
 * Many results stay quick to read: every view in less than a second of CPU time, merging in less
 * than 20 s. RIDGE_STORE_RESULTS: how many results of 1000 samples and 60 steps; 50 unless
 * tests/long/store.sh asks for a million samples. Prints what it measured. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/embedded.h"
#include "base/system/clock.h"
#include "results/query.h"
#include "results/sqlite.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

enum { SAMPLES = 1000, STEPS = 60 };

static const char *const uuids[] = {"aaaaaaaa-0000-4000-8000-000000000001",
                                    "bbbbbbbb-0000-4000-8000-000000000002"};

static int result_count(void)
{
    const char *results = getenv("RIDGE_STORE_RESULTS");
    return results ? (int)strtol(results, NULL, 10) : 50;
}

static double seconds_since(uint64_t start)
{
    return (double)(clock_now_ns() - start) * 1e-9;
}

static void put_run(struct store *store, int number)
{
    struct run_head head = made_head(uuids[number], number);
    struct made_record made;
    int64_t run;
    int count;
    const struct ceiling_record *ceilings = made_ceilings(&count);
    MUST(run_begin, store, &head, &run);
    MUST(run_put_ceilings, store, run, ceilings, count);
    for (int k = 0; k < result_count(); k++) {
        assert_int_equal(made_record(&made, k, 0.02, SAMPLES, STEPS), STATUS_OK);
        MUST(run_put, store, run, &made.record);
        made_release(&made);
    }
    MUST(run_end, store, run, true, true, "");
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A run that stores nothing new is the usual question; :result stays NULL for the whole of it. */
static double slowest_view(struct store *store, bool whole)
{
    const struct query_value values[] = {{"run", NULL, 1},
                                         {"a", NULL, 1},
                                         {"b", NULL, 2},
                                         {"point", "0000000000001010", 0},
                                         {"result", NULL, 1}};
    const struct embedded *file = NULL;
    double slowest = 0;
    while ((file = embedded_next("results/views/", file))) {
        char name[64];
        const char *base = file->path + strlen("results/views/");
        struct grid grid;
        if (strchr(base, '/'))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
        double start = cpu_s();
        MUST(query_view, store, name, values, whole ? 4 : 5, &grid);
        double took = cpu_s() - start;
        if (took > 0.05)
            printf("# view %s%s: %lld rows in %.3f s\n", name, whole ? " of the run" : "",
                   (long long)grid.row_count, took);
        slowest = took > slowest ? took : slowest;
        grid_release(&grid);
    }
    return slowest;
}

TEST(views_are_quick)
{
    struct place *place = *state;
    struct store *store = place_store(place->db);
    uint64_t start = clock_now_ns();
    put_run(store, 0);
    printf("# %d samples and %d steps in %d results stored in %.2f s\n", result_count() * SAMPLES,
           result_count() * STEPS, result_count(), seconds_since(start));
    double one = slowest_view(store, false), all = slowest_view(store, true);
    printf("# slowest view: %.3f s of one result, %.3f s of the run\n", one, all);
    assert_true(one < 1 && all < 1);
    store_close(store);
}

/* A view that reads all steps or all numbers once per result takes seconds. */
TEST(views_of_many_points_are_quick)
{
    enum { RESULTS = 1000, FEW_STEPS = 16 };
    struct place *place = *state;
    struct store *store = place_store(place->db);
    struct run_head head = made_head(uuids[0], 0);
    struct made_record made;
    int64_t run;
    MUST(run_begin, store, &head, &run);
    for (int k = 0; k < RESULTS; k++) {
        assert_int_equal(made_record(&made, k, 0.02, 1, FEW_STEPS), STATUS_OK);
        MUST(run_put, store, run, &made.record);
        made_release(&made);
    }
    MUST(run_end, store, run, true, true, "");
    double all = slowest_view(store, true);
    printf("# slowest view of %d results: %.3f s\n", RESULTS, all);
    assert_true(all < 1);
    store_close(store);
}

TEST(merging_is_quick)
{
    struct place *place = *state;
    struct store *store = place_store(place->other);
    struct ingest_counts counts;
    struct stat info;
    put_run(store, 0);
    put_run(store, 1);
    store_close(store);
    assert_int_equal(stat(place->other, &info), 0);
    store = place_store(place->db);
    uint64_t start = clock_now_ns();
    MUST(store_ingest, store, place->other, &counts);
    double first = seconds_since(start);
    assert_int_equal(counts.samples_new, 2LL * result_count() * SAMPLES);
    start = clock_now_ns();
    MUST(store_ingest, store, place->other, &counts);
    printf("# %.1f MB, %d samples merged in %.2f s, again in %.2f s\n", (double)info.st_size * 1e-6,
           2 * result_count() * SAMPLES, first, seconds_since(start));
    assert_int_equal(counts.samples_new, 0);
    assert_true(first < 20);
    store_close(store);
}

const struct unit_fixture unit_fixture = {.before_each = place_open, .after_each = place_close};
