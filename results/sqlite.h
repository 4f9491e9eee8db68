/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files of results/ alone: the one place where SQLite's header is included. Statuses of
 * SQLite become ours in one macro, so that every message names the file, what was being done, what
 * was wrong and what to do.
 */
#ifndef RESULTS_SQLITE_H
#define RESULTS_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/embedded.h"
#include "base/error.h"
#include "results/record.h"

enum { STORE_APPLICATION = 0x52494447, STORE_BUSY_MS = 10000, STORE_STATEMENTS = 24 };

struct store {
    sqlite3 *db;
    char *path;                                 /* as the caller wrote it */
    sqlite3_stmt *statements[STORE_STATEMENTS]; /* of results/put.c, prepared when first used */
    int spools_left;
    char spool_left[320];   /* one of them ... */
    struct error spool_why; /* ... and why it was not taken in */
    int busy_ms;
    int last_code;  /* of SQLite, when something last failed */
    bool has_log;   /* written through a write-ahead log */
    bool immutable; /* read without locks: nobody can write where it is */
};

/* call: an SQLite function that returns a code. doing: "storing the result". */
#define SQL_TRY(store, call, doing, err)                                                           \
    do {                                                                                           \
        int sql_code_ = (call);                                                                    \
        if (sql_code_ != SQLITE_OK && sql_code_ != SQLITE_ROW && sql_code_ != SQLITE_DONE)         \
            return sql_fail(store, doing, err);                                                    \
    } while (0)

/* ---- results/sqlite.c ---- */

enum status sql_fail(struct store *store, const char *doing, struct error *err);
enum status sql_exec(struct store *store, const char *sql, const char *doing, struct error *err);
enum status sql_prepare(struct store *store, const char *sql, sqlite3_stmt **out,
                        struct error *err);
/* The first column of the first row; 0 when there is no row. */
enum status sql_integer(struct store *store, const char *sql, int64_t *out, struct error *err);

/* Writing: sql_begin takes the write lock and makes sure that the file is still where it was. */
enum status sql_begin(struct store *store, const char *doing, struct error *err);
/* Commits when status is OK and rolls back otherwise; returns the first failure. */
enum status sql_finish(struct store *store, enum status status, const char *doing,
                       struct error *err);

/* Binds parameters one after the other: NAN, RECORD_NONE and a NULL text become NULL. */
struct binder {
    sqlite3_stmt *statement;
    int next;
    int code; /* the first that was not SQLITE_OK */
};

struct binder binder_on(sqlite3_stmt *statement);
void bind_text(struct binder *binder, const char *text);
void bind_int(struct binder *binder, int64_t value);
void bind_number(struct binder *binder, double value);
/* Runs the statement to its end. *row: the integer in its first row, if there is one. */
enum status binder_run(struct store *store, struct binder *binder, int64_t *row, const char *doing,
                       struct error *err);

/* ---- results/put.c ---- */

/* What enums of results/record.h are called in the tables. */
extern const char *const better_names[BETTER_COUNT];
extern const char *const phase_names[SAMPLE_PHASE_COUNT];
extern const char *const result_status_names[RESULT_STATUS_COUNT];

/* ---- results/store.c ---- */

struct open_how {
    bool write;  /* made when absent, migrated when old */
    bool as_is;  /* the caller looks at its version */
    bool alone;  /* keeps the lock until it is closed: spools */
    int busy_ms; /* how long to wait for others */
    int *code;   /* SQLite's, when it fails; may be NULL */
};

enum status store_open_how(const char *path, const struct open_how *how, struct store **out,
                           struct error *err);
/* "file:..." as ATTACH takes it, read-only; freed with sqlite3_free. */
char *sql_read_only_uri(const char *path, bool immutable);

/* ---- results/migrate.c ---- */

/* Applies those of `files` (results/schema/NNN_*.sql in order; a path of NULL ends them) whose
 * number is above the database's, in one transaction. A fresh database is at 0. */
enum status migrate(struct store *store, const struct embedded *files, struct error *err);
/* FAILED unless the database is ours or empty, and not newer than `files`. */
enum status migrate_check(struct store *store, const struct embedded *files, bool *current,
                          struct error *err);
/* The files of the program itself; free() when done. */
struct embedded *migrate_files(void);

/* ---- results/attempts.c ---- */

/* Inside of the transaction that stores the point's result. */
enum status attempt_forget(struct store *store, int64_t run, int sequence, struct error *err);

/* ---- results/spool.c ---- */

/* Takes in what runs had to put beside this database; what could not be read is counted. */
void spools_ingest(struct store *store);

#endif
