/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements, transactions and errors of SQLite in the words of this program. */
#include "results/sqlite.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "results/record.h"

/* SQLite keeps the error number of some failures only; errno still holds that of the others. */
static enum status fail_io(const struct store *store, const char *doing, int number,
                           struct error *err)
{
    if (sqlite3_system_errno(store->db))
        number = sqlite3_system_errno(store->db);
    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: no space is left (%s); free some, or name another file with --db",
                    store->path, doing, strerror(number));
    return FAIL(err, STATUS_FAILED,
                "%s: %s: input/output error (%s, %s); look at the disk, or name another file "
                "with --db",
                store->path, doing, number ? strerror(number) : "no error number",
                sqlite3_errmsg(store->db));
}

enum status sql_fail(struct store *store, const char *doing, struct error *err)
{
    int number = errno;
    const char *path = store->path, *text = sqlite3_errmsg(store->db);
    store->last_code = sqlite3_errcode(store->db) & 0xff;
    switch (store->last_code) {
    case SQLITE_NOMEM:
        return FAIL_NO_MEMORY(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: another process has kept the database locked; wait until it is done "
                    "or name another file with --db",
                    path, doing);
    case SQLITE_READONLY:
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: the file or its folder is read-only; make both writable, or name "
                    "another file with --db",
                    path, doing);
    case SQLITE_FULL:
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: no space is left; free some, or name another file with --db", path,
                    doing);
    case SQLITE_IOERR:
        return fail_io(store, doing, number, err);
    case SQLITE_CANTOPEN:
        return FAIL(err, STATUS_FAILED, "%s: %s: it cannot be opened (%s)", path, doing,
                    sqlite3_system_errno(store->db) ? strerror(sqlite3_system_errno(store->db))
                                                    : text);
    case SQLITE_NOTADB:
        return FAIL(err, STATUS_FAILED,
                    "%s: this is not a database of results; name another file with --db", path);
    case SQLITE_CORRUPT:
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: the file is damaged (%s); put a copy in its place, or rescue what is "
                    "left with `sqlite3 FILE .recover`",
                    path, doing, text);
    default:
        return FAIL(err, STATUS_FAILED, "%s: %s: %s", path, doing, text);
    }
}

enum status sql_exec(struct store *store, const char *sql, const char *doing, struct error *err)
{
    SQL_TRY(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL), doing, err);
    return STATUS_OK;
}

enum status sql_prepare(struct store *store, const char *sql, sqlite3_stmt **out, struct error *err)
{
    *out = NULL;
    SQL_TRY(store, sqlite3_prepare_v2(store->db, sql, -1, out, NULL), "reading its tables", err);
    return STATUS_OK;
}

enum status sql_integer(struct store *store, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *statement;
    TRY(sql_prepare(store, sql, &statement, err));
    int code = sqlite3_step(statement);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    enum status status = STATUS_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sql_fail(store, "reading it", err);
    sqlite3_finalize(statement);
    return status;
}

enum status sql_begin(struct store *store, const char *doing, struct error *err)
{
    int moved = 0;
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (moved) /* what is written now would be in no folder */
        return FAIL(err, STATUS_FAILED,
                    "%s: %s: the file was moved, replaced or removed while it was in use",
                    store->path, doing);
    return sql_exec(store, "BEGIN IMMEDIATE", doing, err);
}

enum status sql_finish(struct store *store, enum status status, const char *doing,
                       struct error *err)
{
    if (status == STATUS_OK)
        status = sql_exec(store, "COMMIT", doing, err);
    if (status != STATUS_OK && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- parameters ---- */

struct binder binder_on(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    return (struct binder){statement, 1, SQLITE_OK};
}

static void bound(struct binder *binder, int code)
{
    binder->next++;
    if (binder->code == SQLITE_OK)
        binder->code = code;
}

void bind_text(struct binder *binder, const char *text)
{
    bound(binder, sqlite3_bind_text(binder->statement, binder->next, text, -1, SQLITE_STATIC));
}

void bind_int(struct binder *binder, int64_t value)
{
    bound(binder, value == RECORD_NONE
                      ? sqlite3_bind_null(binder->statement, binder->next)
                      : sqlite3_bind_int64(binder->statement, binder->next, value));
}

void bind_number(struct binder *binder, double value)
{
    bound(binder, isnan(value) ? sqlite3_bind_null(binder->statement, binder->next)
                               : sqlite3_bind_double(binder->statement, binder->next, value));
}

enum status binder_run(struct store *store, struct binder *binder, int64_t *row, const char *doing,
                       struct error *err)
{
    enum status status = STATUS_OK;
    int code = binder->code == SQLITE_OK ? sqlite3_step(binder->statement) : binder->code;
    if (row)
        *row = code == SQLITE_ROW ? sqlite3_column_int64(binder->statement, 0) : 0;
    while (code == SQLITE_ROW)
        code = sqlite3_step(binder->statement);
    if (code != SQLITE_DONE)
        status = sql_fail(store, doing, err);
    sqlite3_reset(binder->statement);
    sqlite3_clear_bindings(binder->statement);
    return status;
}
