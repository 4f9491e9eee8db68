/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of a database and the way forward. Version N is what results/schema/001 to N make
 * together; user_version holds N, application_id says whose file it is. There is no way back: an
 * older program refuses a newer file and does not touch it. */
#include "results/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = "results/schema/";

struct embedded *migrate_files(void)
{
    size_t count = 0;
    const struct embedded *at = NULL;
    while ((at = embedded_next(folder, at)))
        count++;
    struct embedded *files = calloc(count + 1, sizeof(*files));
    if (files)
        for (size_t k = 0; k < count; k++)
            files[k] = *(at = embedded_next(folder, at));
    return files;
}

static int number_of(const struct embedded *file)
{
    const char *slash = strrchr(file->path, '/');
    return (int)strtol(slash ? slash + 1 : file->path, NULL, 10);
}

static int latest_of(const struct embedded *files)
{
    int latest = 0;
    for (; files->path; files++)
        latest = number_of(files);
    return latest;
}

enum status migrate_check(struct store *store, const struct embedded *files, bool *current,
                          struct error *err)
{
    int64_t application, version, objects;
    int latest = latest_of(files);
    TRY(sql_integer(store, "PRAGMA application_id", &application, err));
    TRY(sql_integer(store, "PRAGMA user_version", &version, err));
    TRY(sql_integer(store, "SELECT count(*) FROM sqlite_schema", &objects, err));
    if (application != STORE_APPLICATION && (application || version || objects))
        return FAIL(err, STATUS_FAILED,
                    "%s: this is a database of another program; name another file with --db",
                    store->path);
    if (version > latest || version < 0)
        return FAIL(err, STATUS_FAILED,
                    "%s: written by a newer ridge (schema %lld, this one knows %d); use that one, "
                    "or name another file with --db",
                    store->path, (long long)version, latest);
    *current = version == latest;
    return STATUS_OK;
}

static enum status apply(struct store *store, const struct embedded *files, struct error *err)
{
    int64_t version;
    char sql[96];
    TRY(sql_integer(store, "PRAGMA user_version", &version, err));
    for (const struct embedded *file = files; file->path; file++) {
        if (number_of(file) <= version)
            continue;
        TRY(sql_exec(store, file->text, file->path, err));
        snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; PRAGMA application_id = %d",
                 number_of(file), STORE_APPLICATION);
        TRY(sql_exec(store, sql, file->path, err));
    }
    return STATUS_OK;
}

enum status migrate(struct store *store, const struct embedded *files, struct error *err)
{
    static const char doing[] = "bringing it to this version";
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, apply(store, files, err), doing, err);
}
