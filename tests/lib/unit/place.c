/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/unit/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/sqlite.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"

int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    *state = place;
    if (!place || !(place->folder = made_folder()))
        return -1;
    snprintf(place->db, sizeof(place->db), "%s/ridge.db", place->folder);
    snprintf(place->other, sizeof(place->other), "%s/other.db", place->folder);
    return 0;
}

int place_close(void **state)
{
    struct place *place = *state;
    store_close(place->store);
    made_folder_remove(place->folder);
    free(place);
    return 0;
}

void place_begin_run(struct place *place, const struct run_head *head)
{
    MUST(store_open, place->db, STORE_WRITE, &place->store);
    MUST(run_begin, place->store, head, &place->run);
}

struct store *place_store(const char *path)
{
    struct store *store = NULL;
    MUST(store_open, path, STORE_WRITE, &store);
    return store;
}

void put_result(struct store *store, int64_t run, int sequence, double time_s, int64_t samples)
{
    struct made_record made;
    assert_int_equal(made_record(&made, sequence, time_s, samples, MADE_OPS), STATUS_OK);
    MUST(run_put, store, run, &made.record);
    made_release(&made);
}

void place_fill(const char *path, const char *uuid, int when, int first, int last, int64_t samples)
{
    struct store *store = place_store(path);
    struct run_head head = made_head(uuid, when);
    int64_t run;
    int ceilings;
    const struct ceiling_record *roofs = made_ceilings(&ceilings);
    MUST(run_begin, store, &head, &run);
    MUST(run_put_facts, store, run, "before", head.environment);
    for (int k = first; k <= last; k++)
        put_result(store, run, k, 0.02, samples);
    MUST(run_put_ceilings, store, run, roofs, ceilings);
    MUST(run_end, store, run, true, true, "");
    store_close(store);
}

static void release_grid(void *grid)
{
    grid_release(grid);
}

struct grid place_view(struct place *place, const char *name, const char *parameter, double value)
{
    struct grid grid;
    struct query_value values[] = {{parameter, NULL, value}};
    MUST(query_view, place->store, name, values, 1, &grid);
    after_test(release_grid, &grid, sizeof(grid));
    return grid;
}

int64_t sql_count(struct store *store, const char *sql)
{
    int64_t value = -1;
    MUST(sql_integer, store, sql, &value);
    return value;
}

int64_t rows_of(struct store *store, const char *table)
{
    char sql[512];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    return sql_count(store, sql);
}

void grid_is(const struct grid *grid, int64_t row, const char *column, double expected)
{
    double value = grid_number(grid, row, column);
    if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("row %d: %s is %.17g, not %.17g", (int)row, column, value, expected);
}
