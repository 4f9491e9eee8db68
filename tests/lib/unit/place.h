/* SPDX-License-Identifier: Apache-2.0
 *
 * For unit tests of the store and of what reads it: a folder per test for up to two databases.
 */
#ifndef TESTS_LIB_UNIT_PLACE_H
#define TESTS_LIB_UNIT_PLACE_H

#include "results/query.h"
#include "results/store.h"

struct place {
    char *folder, db[600], other[600]; /* folder/ridge.db and folder/other.db, not yet there */
    struct store *store;               /* of place_begin_run; NULL: none is open */
    int64_t run;
    int next; /* sequence number in the run */
    struct error err;
};

/* Before and after each test. */
int place_open(void **state);
int place_close(void **state);
void place_begin_run(struct place *place, const struct run_head *head);
/* Opens a database to write into it. */
struct store *place_store(const char *path);
/* Result `sequence` of a run. */
void put_result(struct store *store, int64_t run, int sequence, double time_s, int64_t samples);
/* A database with one finished run, begun at second `when`: its results first to last of 20 ms. */
void place_fill(const char *path, const char *uuid, int when, int first, int last, int64_t samples);
/* A view of its database, with one parameter; released after the test. */
struct grid place_view(struct place *place, const char *name, const char *parameter, double value);
/* What a question that has one integer as its answer gives. */
int64_t sql_count(struct store *store, const char *sql);
/* How many rows there are of a table, or of a table with a condition: "sample WHERE idx = 0". */
int64_t rows_of(struct store *store, const char *table);
/* expected NAN: there is no number. */
void grid_is(const struct grid *grid, int64_t row, const char *column, double expected);

#endif
