/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/machine/build_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_object(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".so") == 0;
}

static enum status add(struct build_files *out, struct arena *arena, const char *path,
                       const char *place, struct error *err)
{
    out->files = arena_grow(arena, out->files, &out->capacity, out->count + 1, sizeof(*out->files));
    if (!out->files || !path || !place)
        return FAIL_NO_MEMORY(err);
    out->files[out->count++] = (struct build_file){path, place};
    return STATUS_OK;
}

static enum status add_folder(struct build_files *out, struct arena *arena, const char *folder,
                              const char *place, struct error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_object, alphasort);
    enum status status = STATUS_OK;
    for (int k = 0; k < count; k++) {
        const char *name = entries[k]->d_name;
        if (status == STATUS_OK)
            status = add(out, arena, arena_printf(arena, "%s/%s", folder, name),
                         arena_printf(arena, "%s/%s", place, name), err);
        free(entries[k]);
    }
    free(entries);
    return status;
}

/* The folders where engine/run/plugin.c and profilers/papi.c look, in this order. */
enum status build_files_at(const char *program, const char *named, struct arena *arena,
                           struct build_files *out, struct error *err)
{
    *out = (struct build_files){.count = 0};
    static const char *const folders[] = {"plugins", "plugins/profilers", "build/release/plugins",
                                          "build/release/plugins/profilers"};
    const char *slash = strrchr(program, '/');
    TRY(add(out, arena, program, "ridge", err));
    for (const char *at = named ? named : ""; *at; at += at[0] == ':') {
        size_t length = strcspn(at, ":");
        char *folder = arena_printf(arena, "%.*s", (int)length, at);
        char *place = arena_printf(arena, "named/%d", out->named++);
        if (!folder || !place)
            return FAIL_NO_MEMORY(err);
        TRY(add_folder(out, arena, folder, place, err));
        at += length;
    }
    if (slash)
        for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++) {
            char *folder =
                arena_printf(arena, "%.*s/%s", (int)(slash - program), program, folders[k]);
            if (!folder)
                return FAIL_NO_MEMORY(err);
            TRY(add_folder(out, arena, folder, folders[k], err));
        }
    return STATUS_OK;
}

enum status build_files_find(const char *program, const char *named, struct arena *arena,
                             struct build_files *out, struct error *err)
{
    char *real = realpath(program, NULL);
    if (!real)
        return FAIL(err, STATUS_FAILED, "%s: %s", program, strerror(errno));
    char *path = arena_strdup(arena, real);
    free(real);
    return path ? build_files_at(path, named, arena, out, err) : FAIL_NO_MEMORY(err);
}

enum status build_files_uid(const struct build_files *files, char uid[HASH64_TEXT],
                            struct error *err)
{
    uint64_t hash;
    TRY(hash64_file(files->files[0].path, &hash, err));
    for (size_t k = 1; k < files->count; k++) {
        uint64_t contents;
        const char *name = strrchr(files->files[k].path, '/') + 1;
        if (hash64_file(files->files[k].path, &contents, NULL) != STATUS_OK)
            continue;
        hash = hash64_more(hash, name, strlen(name));
        hash = hash64_more(hash, &contents, sizeof(contents));
    }
    hash64_hex(hash, uid);
    return STATUS_OK;
}
