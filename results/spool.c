/* SPDX-License-Identifier: Apache-2.0
 *
 * Where runs go on when the main database cannot be written. A spool keeps its lock as long as its
 * process lives: one whose lock is free belongs to nobody any more, finished or killed, and what
 * it holds is complete in the sense of the store, since each record is a transaction. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system/hash.h"
#include "results/sqlite.h"
#include "results/store.h"

enum { PATH_BYTES = 4096, PLACES = 2 };

/* Folder number `place` for the spools of database `path`: beside it, then under $TMPDIR. */
static bool spool_folder(const char *path, int place, char *folder)
{
    char here[PATH_BYTES] = "", whole[2 * PATH_BYTES];
    const char *tmp = getenv("TMPDIR");
    int length;
    if (place == 0) {
        length = snprintf(folder, PATH_BYTES, "%s.spool", path);
        return length > 0 && length < PATH_BYTES;
    }
    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        return false;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    snprintf(whole, sizeof(whole), "%s%s%s", here, here[0] ? "/" : "", path);
    length = snprintf(folder, PATH_BYTES, "%s/ridge-%lu-%016llx.spool", tmp && *tmp ? tmp : "/tmp",
                      (unsigned long)getuid(), (unsigned long long)hash_fnv1a(whole));
    return length > 0 && length < PATH_BYTES;
}

/* A folder or file of somebody else, or a link to anywhere, is not trusted. */
static bool is_trusted(const char *path, bool folder)
{
    struct stat info;
    return lstat(path, &info) == 0 && info.st_uid == geteuid() &&
           (folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode));
}

static enum status open_in(const char *folder, const char *uuid, struct store **out,
                           struct error *err)
{
    char file[PATH_BYTES + 64];
    struct open_how how = {.write = true, .alone = true, .busy_ms = 1000};
    if (mkdir(folder, 0700) && errno != EEXIST)
        return FAIL(err, STATUS_FAILED, "%s: the folder cannot be made: %s", folder,
                    strerror(errno));
    if (!is_trusted(folder, true))
        return FAIL(err, STATUS_FAILED, "%s: belongs to another user or is no folder", folder);
    snprintf(file, sizeof(file), "%s/%s.db", folder, uuid);
    enum status status = store_open_how(file, &how, out, err);
    if (status != STATUS_OK)
        return status;
    /* Takes the lock, which then stays. */
    status = sql_exec(*out, "BEGIN EXCLUSIVE; COMMIT", "opening it", err);
    if (status != STATUS_OK) {
        store_close(*out);
        *out = NULL;
    }
    return status;
}

enum status store_open_spool(const char *path, const char *uuid, struct store **out,
                             struct error *err)
{
    char folder[PATH_BYTES];
    enum status status = FAIL(err, STATUS_FAILED, "%s: the path is too long for a spool", path);
    *out = NULL;
    if (strlen(uuid) > 36 || strchr(uuid, '/'))
        return FAIL(err, STATUS_FAILED, "\"%s\" is no uuid of a run", uuid);
    for (int place = 0; place < PLACES && status != STATUS_OK; place++)
        if (spool_folder(path, place, folder))
            status = open_in(folder, uuid, out, err);
    return status;
}

enum { EMPTY_LEAST_S = 60 };

/* A file that a process is just making has no run yet and is left to it; one that stays empty for
 * longer holds nothing and goes. */
static void take_in(struct store *store, const char *file)
{
    struct ingest_counts counts;
    struct error why = {0};
    char journal[PATH_BYTES + 320];
    struct stat info;
    if (!is_trusted(file, false) || stat(file, &info) != 0)
        return;
    if (info.st_size == 0) {
        if (time(NULL) - info.st_mtime > EMPTY_LEAST_S)
            unlink(file);
        return;
    }
    if (store_ingest(store, file, &counts, &why) != STATUS_OK) {
        if (store->last_code == SQLITE_BUSY)
            return;
        store->spools_left++;
        store->spool_why = why;
        snprintf(store->spool_left, sizeof(store->spool_left), "%.300s", file);
        return;
    }
    unlink(file);
    snprintf(journal, sizeof(journal), "%s-journal", file);
    unlink(journal);
}

void spools_ingest(struct store *store)
{
    char folder[PATH_BYTES], file[PATH_BYTES + 300];
    store->busy_ms = 0; /* a spool in use stays in use */
    sqlite3_busy_timeout(store->db, 0);
    for (int place = 0; place < PLACES; place++) {
        DIR *entries = NULL;
        if (spool_folder(store->path, place, folder) && is_trusted(folder, true))
            entries = opendir(folder);
        for (struct dirent *entry; entries && (entry = readdir(entries));) {
            size_t length = strlen(entry->d_name);
            if (length < 4 || strcmp(entry->d_name + length - 3, ".db") != 0)
                continue;
            snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
            take_in(store, file);
        }
        if (entries) {
            closedir(entries);
            rmdir(folder); /* only when empty */
        }
    }
    store->busy_ms = STORE_BUSY_MS;
    sqlite3_busy_timeout(store->db, store->busy_ms);
}
