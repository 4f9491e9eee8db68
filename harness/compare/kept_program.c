/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/compare/kept_program.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "harness/machine/build_files.h"
#include "harness/machine/environment.h"
#include "results/query.h"

static const char named_variable[] = "RIDGE_PLUGIN_PATH";

/* ---- files ---- */

static enum status copy_bytes(int from, int to, const char *path, struct error *err)
{
    static const size_t step = 1 << 20;
    char *buffer = malloc(step);
    ssize_t got = 1, written = 0;
    while (buffer && got > 0 && written >= 0) {
        got = read(from, buffer, step);
        for (ssize_t done = 0; done < got && written >= 0; done += written)
            written = write(to, buffer + done, (size_t)(got - done));
    }
    free(buffer);
    if (!buffer)
        return FAIL_NO_MEMORY(err);
    return got == 0 && written >= 0 && fsync(to) == 0
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "writing %s failed: %s", path, strerror(errno));
}

static enum status copy_file(const char *source, const char *path, struct error *err)
{
    TRY(folders_make(path, err));
    int from = open(source, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return FAIL(err, STATUS_FAILED, "cannot read %s: %s", source, strerror(errno));
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    enum status status =
        to < 0 ? FAIL(err, STATUS_FAILED, "cannot write %s: %s", path, strerror(errno))
               : copy_bytes(from, to, path, err);
    close(from);
    if (to >= 0 && close(to) && status == STATUS_OK)
        status = FAIL(err, STATUS_FAILED, "writing %s failed: %s", path, strerror(errno));
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

/* The folder in which the copy is made; nobody else knows it yet. */
static void remove_folder(const char *path)
{
    enum { DESCRIPTORS = 8 };
    nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* ---- what is kept ---- */

/* "FOLDER/named/0:FOLDER/named/1", as many as there are; "" for none. */
static char *named_folders(const char *folder, struct arena *arena)
{
    char *all = arena_strdup(arena, "");
    for (int k = 0; all; k++) {
        char *one = arena_printf(arena, "%s/named/%d", folder, k);
        struct stat info;
        if (!one || stat(one, &info) != 0)
            break;
        all = arena_printf(arena, "%s%s%s", all, k ? ":" : "", one);
    }
    return all;
}

/* The uid of what is in the folder; "" when there is no program. */
static void uid_of(const char *folder, struct arena *arena, char uid[HASH64_TEXT])
{
    struct build_files files;
    const char *program = arena_printf(arena, "%s/ridge", folder);
    const char *named = named_folders(folder, arena);
    uid[0] = '\0';
    if (program && build_files_find(program, named, arena, &files, NULL) == STATUS_OK &&
        build_files_uid(&files, uid, NULL) != STATUS_OK)
        uid[0] = '\0';
}

static char *folder_of(const char *db, const char *uid, struct arena *arena)
{
    return arena_printf(arena, "%s.programs/%s", db, uid);
}

bool kept_program_find(const char *db, const char *uid, struct arena *arena,
                       struct kept_program *out)
{
    const char *folder = folder_of(db, uid, arena);
    const char *path = folder ? arena_printf(arena, "%s/ridge", folder) : NULL;
    const char *named = folder ? named_folders(folder, arena) : NULL;
    const char **environment = arena_array(arena, 2, sizeof(*environment));
    if (!path || !named || !environment || access(path, X_OK) != 0)
        return false;
    environment[0] = arena_printf(arena, "%s=%s", named_variable, named);
    environment[1] = NULL;
    /* A name without '/' would be searched in PATH. */
    out->path = strchr(path, '/') ? path : arena_printf(arena, "./%s", path);
    out->environment = environment;
    return environment[0] && out->path;
}

static enum status copy_all(const struct build_files *files, const char *folder, const char *uid,
                            struct arena *arena, struct error *err)
{
    char found[HASH64_TEXT];
    for (size_t k = 0; k < files->count; k++) {
        char *to = arena_printf(arena, "%s/%s", folder, files->files[k].place);
        if (!to)
            return FAIL_NO_MEMORY(err);
        TRY(copy_file(files->files[k].path, to, err));
    }
    /* A folder of RIDGE_PLUGIN_PATH without plug-ins keeps its number. */
    for (int k = 0; k < files->named; k++) {
        char *to = arena_printf(arena, "%s/named/%d/", folder, k);
        TRY(to ? folders_make(to, err) : FAIL_NO_MEMORY(err));
    }
    uid_of(folder, arena, found);
    return strcmp(found, uid) == 0 ? STATUS_OK
                                   : FAIL(err, STATUS_FAILED,
                                          "the copy in %s is build %s, not %s: did the program's "
                                          "files change just now?",
                                          folder, found[0] ? found : "unknown", uid);
}

static enum status keep_files(const struct build_files *files, const char *folder, const char *uid,
                              struct arena *arena, struct error *err)
{
    const char *slash = strrchr(folder, '/');
    char *part =
        arena_printf(arena, "%.*s/.%s.%d", (int)(slash - folder), folder, slash + 1, (int)getpid());
    if (!part)
        return FAIL_NO_MEMORY(err);
    enum status status = copy_all(files, part, uid, arena, err);
    if (status == STATUS_OK && rename(part, folder) != 0)
        status = FAIL(err, STATUS_FAILED, "cannot name %s: %s", folder, strerror(errno));
    if (status != STATUS_OK)
        remove_folder(part);
    return status;
}

enum status kept_program_keep(const char *db, const char *uid, struct arena *arena,
                              const char **path, bool *fresh, struct error *err)
{
    struct build_files files;
    char this_uid[HASH64_TEXT], found[HASH64_TEXT];
    *path = folder_of(db, uid, arena);
    if (!*path)
        return FAIL_NO_MEMORY(err);
    uid_of(*path, arena, found);
    *fresh = !found[0];
    if (found[0])
        return strcmp(found, uid) == 0
                   ? STATUS_OK
                   : FAIL(err, STATUS_FAILED,
                          "%s holds another program (build %s): it was changed after it was kept. "
                          "Remove the folder",
                          *path, found);
    TRY(build_probe_files(&files, arena, err));
    TRY(build_files_uid(&files, this_uid, err));
    if (strcmp(this_uid, uid) != 0)
        return FAIL(
            err, STATUS_FAILED,
            "the program of this run cannot be kept: it was build %s, this program is build "
            "%s. Say the same with the program that made the run, in the same %s",
            uid, this_uid, named_variable);
    return keep_files(&files, *path, uid, arena, err);
}

/* ---- words ---- */

struct named_build {
    bool found;
    const char *uuid, *uid, *label;
};

static enum status find_baseline(const char *name, const char *db, struct arena *arena,
                                 struct named_build *out, struct error *err)
{
    static const char sql[] = "SELECT b.run_uuid, ifnull(d.uid, '') AS uid, ifnull(d.version || ' "
                              "' || d.git, '') AS label "
                              "FROM baseline AS b LEFT JOIN run AS u ON u.uuid = b.run_uuid "
                              "LEFT JOIN build AS d ON d.id = u.build WHERE b.name = :name";
    struct query_value value = {"name", name, 0};
    struct store *store;
    struct grid grid;
    *out = (struct named_build){.found = false};
    TRY(store_open(db, STORE_READ, &store, err));
    enum status status = query_sql(store, sql, &value, 1, &grid, err);
    store_close(store);
    if (status != STATUS_OK)
        return status;
    out->found = grid.row_count > 0;
    if (out->found) {
        out->uuid = arena_strdup(arena, grid_text(&grid, 0, "run_uuid"));
        out->uid = arena_strdup(arena, grid_text(&grid, 0, "uid"));
        out->label = arena_strdup(arena, grid_text(&grid, 0, "label"));
    }
    grid_release(&grid);
    return !out->found || (out->uuid && out->uid && out->label) ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status of_baseline(const char *name, const struct named_build *build, const char *db,
                               struct arena *arena, struct kept_program *out, struct error *err)
{
    char found[HASH64_TEXT];
    if (!build->uid[0])
        return FAIL(err, STATUS_FAILED, "baseline \"%s\" is run %s, which is not in %s", name,
                    build->uuid, db);
    if (!kept_program_find(db, build->uid, arena, out))
        return FAIL(err, STATUS_FAILED,
                    "the program of baseline \"%s\" (%s) is not kept. With that program: "
                    "`ridge compare --set-baseline %s %.8s --keep-program --db %s`",
                    name, build->label, name, build->uuid, db);
    uid_of(folder_of(db, build->uid, arena), arena, found);
    return strcmp(found, build->uid) == 0
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED,
                      "%s is build %s, not %s: it was changed after it was kept", out->path, found,
                      build->uid);
}

enum status kept_program_from_word(const char *word, const char *db, struct arena *arena,
                                   struct kept_program *out, struct error *err)
{
    static const char prefix[] = "baseline:";
    bool named = strncmp(word, prefix, sizeof(prefix) - 1) == 0;
    const char *name = named ? word + sizeof(prefix) - 1 : word;
    struct named_build build = {.found = false};
    struct stat info;
    *out = (struct kept_program){.path = word};
    if (!named && stat(word, &info) == 0 && S_ISREG(info.st_mode)) {
        out->path = strchr(word, '/') ? word : arena_printf(arena, "./%s", word);
        return out->path ? STATUS_OK : FAIL_NO_MEMORY(err);
    }
    if (!named && strchr(word, '/'))
        return FAIL(err, STATUS_FAILED, "--against %s: %s", word,
                    stat(word, &info) == 0 ? "no regular file" : strerror(errno));
    if (named || access(db, F_OK) == 0)
        TRY(find_baseline(name, db, arena, &build, err));
    if (build.found)
        return of_baseline(name, &build, db, arena, out, err);
    if (named)
        return FAIL(err, STATUS_FAILED, "%s has no baseline \"%s\"", db, name);
    return STATUS_OK; /* PATH */
}
