/* SPDX-License-Identifier: Apache-2.0
 *
 * Which point is being measured, so that one that ends the process again and again does not keep
 * the rest of its run from being measured. */
#include "results/sqlite.h"
#include "results/store.h"

static enum status change(struct store *store, const char *sql, int64_t run, int sequence,
                          int64_t *row, const char *doing, struct error *err)
{
    sqlite3_stmt *statement;
    TRY(sql_prepare(store, sql, &statement, err));
    struct binder b = binder_on(statement);
    bind_int(&b, run);
    bind_int(&b, sequence);
    enum status status = binder_run(store, &b, row, doing, err);
    sqlite3_finalize(statement);
    return status;
}

enum status run_attempt(struct store *store, int64_t run, int sequence, int *earlier,
                        struct error *err)
{
    static const char doing[] = "noting the point that begins";
    int64_t count = 1;
    TRY(sql_begin(store, doing, err));
    enum status status = change(store,
                                "INSERT INTO attempt (run, sequence, count, started_utc) "
                                "VALUES (?, ?, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) "
                                "ON CONFLICT (run, sequence) DO UPDATE SET count = count + 1, "
                                "started_utc = excluded.started_utc RETURNING count",
                                run, sequence, &count, doing, err);
    *earlier = (int)count - 1;
    return sql_finish(store, status, doing, err);
}

enum status attempt_forget(struct store *store, int64_t run, int sequence, struct error *err)
{
    return change(store, "DELETE FROM attempt WHERE run = ? AND sequence = ?", run, sequence, NULL,
                  "noting that the point is done", err);
}

enum status run_attempt_withdraw(struct store *store, int64_t run, int sequence, struct error *err)
{
    static const char doing[] = "noting that the point was not finished";
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, attempt_forget(store, run, sequence, err), doing, err);
}
