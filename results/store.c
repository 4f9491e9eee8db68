/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing. A file that is not ours is looked at and left as it was: nothing is changed
 * before migrate_check has agreed. The write-ahead log needs memory that processes share, so a
 * network file system gets a rollback journal instead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/system/file.h"
#include "results/sqlite.h"
#include "results/store.h"

enum { PATH_BYTES = 4096, TEXT_MAX_BYTES = 64 << 20 };

/* Magic numbers of statfs(2). */
static bool is_on_network(const char *path)
{
    static const unsigned long network[] = {
        0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x0bd00bd0, /* NFS, SMB, CIFS, Lustre */
        0x65735546, 0x01021997, 0x5346414f, 0x00c36400, 0x47504653, /* FUSE, 9P, AFS, Ceph, GPFS */
        0x19830326, 0x20030528, 0x73757245, 0x564c,     0x7461636f, /* BeeGFS, PVFS, Coda, NCP */
    };
    struct statfs info;
    if (statfs(path, &info))
        return true; /* the careful choice */
    for (size_t k = 0; k < sizeof(network) / sizeof(network[0]); k++)
        if (((unsigned long)info.f_type & 0xffffffff) == network[k])
            return true;
    return false;
}

/* SQLite gives a meaning to "", ":memory:" and "file:...": none of them is a path that starts like
 * this one. */
static char *plain_path(const char *path)
{
    return sqlite3_mprintf("%s%s", path[0] == '/' ? "" : "./", path);
}

char *sql_read_only_uri(const char *path, bool immutable)
{
    char *plain = plain_path(path);
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (const char *at = plain; at && *at; at++)
        if (strchr("%?#", *at))
            sqlite3_str_appendf(uri, "%%%02x", (unsigned char)*at);
        else
            sqlite3_str_appendchar(uri, 1, *at);
    sqlite3_str_appendall(uri, immutable ? "?mode=ro&immutable=1" : "?mode=ro");
    sqlite3_free(plain);
    return sqlite3_str_finish(uri);
}

static void folder_of(const char *path, char folder[PATH_BYTES])
{
    snprintf(folder, PATH_BYTES, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *(slash == folder ? slash + 1 : slash) = 0;
    else
        snprintf(folder, PATH_BYTES, ".");
}

/* True for a WAL database without a log, in a folder where no log can be made. Only asked when
 * SQLite could not read it: closing a file gives up the locks that this process has on it. */
static bool needs_immutable(const char *path)
{
    unsigned char head[20] = {0};
    char log[PATH_BYTES], folder[PATH_BYTES];
    struct stat info;
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(head, 1, sizeof(head), file) : 0;
    if (file)
        fclose(file);
    if (got < sizeof(head) || head[18] != 2) /* byte 18 of the header: 2 is WAL */
        return false;
    snprintf(log, sizeof(log), "%s-wal", path);
    folder_of(path, folder);
    bool no_log = stat(log, &info) || info.st_size == 0;
    return no_log && access(folder, W_OK);
}

static int connect_to(struct store *store, const struct open_how *how)
{
    int flags = how->write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    char *name =
        how->write ? plain_path(store->path) : sql_read_only_uri(store->path, store->immutable);
    if (!name)
        return SQLITE_NOMEM;
    sqlite3_close(store->db);
    int code = sqlite3_open_v2(name, &store->db, flags | SQLITE_OPEN_URI, NULL);
    sqlite3_free(name);
    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(store->db, how->busy_ms);
    if (code == SQLITE_OK) /* the first that reads the file */
        code = sqlite3_exec(store->db, "PRAGMA schema_version", NULL, NULL, NULL);
    return code;
}

static enum status connect(struct store *store, const struct open_how *how, struct error *err)
{
    int code = connect_to(store, how) & 0xff;
    if ((code == SQLITE_CANTOPEN || code == SQLITE_READONLY) && !how->write &&
        needs_immutable(store->path)) {
        store->immutable = true;
        code = connect_to(store, how);
    }
    if (!store->db)
        return FAIL_NO_MEMORY(err);
    if (code != SQLITE_OK)
        return sql_fail(store, "opening it", err);
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, TEXT_MAX_BYTES);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return sql_exec(store,
                    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                    "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = 2",
                    "opening it", err);
}

static enum status prepare_writing(struct store *store, const struct open_how *how,
                                   struct error *err)
{
    int64_t ignored;
    if (how->alone)
        return sql_exec(store, "PRAGMA locking_mode = EXCLUSIVE", "opening it", err);
    /* Another process may be in the way of a change of the journal; both kinds are safe. */
    store->has_log = !is_on_network(store->path);
    sql_integer(store,
                store->has_log ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE",
                &ignored, NULL);
    return STATUS_OK;
}

static enum status check_and_migrate(struct store *store, const struct open_how *how, bool *old,
                                     struct error *err)
{
    struct embedded *files = migrate_files();
    bool current = false;
    if (!files)
        return FAIL_NO_MEMORY(err);
    enum status status = migrate_check(store, files, &current, err);
    *old = status == STATUS_OK && !current;
    if (status == STATUS_OK && how->write)
        status = prepare_writing(store, how, err);
    if (status == STATUS_OK && how->write && !current)
        status = migrate(store, files, err);
    free(files);
    return status;
}

static enum status must_exist(const char *path, struct error *err)
{
    struct stat info;
    if (stat(path, &info))
        return FAIL(err, STATUS_FAILED, "%s: %s; `ridge run` makes a database of results", path,
                    errno == ENOENT ? "no such file" : strerror(errno));
    if (!S_ISREG(info.st_mode))
        return FAIL(err, STATUS_FAILED, "%s: this is no regular file", path);
    if (info.st_size == 0)
        return FAIL(err, STATUS_FAILED, "%s: the file is empty; `ridge run` fills it", path);
    return STATUS_OK;
}

static enum status must_be_writable(const char *path, struct error *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return FAIL(err, STATUS_FAILED, "%s: this is no regular file", path);
    if (access(path, F_OK) == 0 && access(path, W_OK)) /* SQLite would open it for reading */
        return FAIL(err, STATUS_FAILED,
                    "%s: the file is read-only; make it writable, or name another with --db", path);
    char folder[PATH_BYTES];
    folder_of(path, folder);
    if (access(folder, F_OK) == 0 && access(folder, W_OK)) /* a journal stands beside it */
        return FAIL(err, STATUS_FAILED,
                    "%s: its folder %s cannot be written to; name another file with --db", path,
                    folder);
    return STATUS_OK;
}

enum status store_open_how(const char *path, const struct open_how *how, struct store **out,
                           struct error *err)
{
    bool old = false;
    *out = NULL;
    TRY(how->write ? must_be_writable(path, err) : must_exist(path, err));
    if (how->write)
        TRY(folders_make(path, err));
    struct store *store = calloc(1, sizeof(*store));
    if (!store || !(store->path = strdup(path))) {
        free(store);
        return FAIL_NO_MEMORY(err);
    }
    enum status status = connect(store, how, err);
    store->busy_ms = how->busy_ms;
    if (status == STATUS_OK && !how->as_is)
        status = check_and_migrate(store, how, &old, err);
    if (status == STATUS_OK && old && !how->write) {
        store_close(store);
        return store_open_how(path, &(struct open_how){.write = true, .busy_ms = how->busy_ms}, out,
                              err);
    }
    if (status == STATUS_OK)
        *out = store;
    else {
        if (how->code)
            *how->code = store->last_code;
        store_close(store);
    }
    return status;
}

enum status store_open(const char *path, enum store_mode mode, struct store **out,
                       struct error *err)
{
    struct open_how how = {.write = mode == STORE_WRITE, .busy_ms = STORE_BUSY_MS};
    TRY(store_open_how(path, &how, out, err));
    if (how.write)
        spools_ingest(*out);
    return STATUS_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int k = 0; k < STORE_STATEMENTS; k++)
        sqlite3_finalize(store->statements[k]);
    if (store->has_log) { /* at rest it is one file that can be read from any medium */
        sqlite3_busy_timeout(store->db, 0);
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    }
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

const char *store_path(const struct store *store)
{
    return store->path;
}

int store_spools_left(const struct store *store)
{
    return store->spools_left;
}

const char *store_spool_left(const struct store *store, const char **why)
{
    *why = store->spool_why.message;
    return store->spool_left;
}
