/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program this is: the hash of the executable and of the plug-ins beside it, because a debug
 * build and a patched plug-in have the same version and commit. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/build_info.h"
#include "base/hash.h"
#include "harness/environment.h"

static int is_object(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".so") == 0;
}

static uint64_t hash_folder(uint64_t hash, const char *folder)
{
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_object, alphasort);
    for (int k = 0; k < count; k++) {
        char path[8192];
        uint64_t contents;
        snprintf(path, sizeof(path), "%s/%s", folder, files[k]->d_name);
        if (hash64_file(path, &contents, NULL) == STATUS_OK) {
            hash = hash64_more(hash, files[k]->d_name, strlen(files[k]->d_name));
            hash = hash64_more(hash, &contents, sizeof(contents));
        }
        free(files[k]);
    }
    free(files);
    return hash;
}

/* The folders where engine/plugin.c and profilers/papi.c look, in this order. */
static uint64_t hash_plugins(uint64_t hash, const char *program)
{
    static const char *const folders[] = {"plugins", "plugins/profilers", "build/release/plugins",
                                          "build/release/plugins/profilers"};
    const char *slash = strrchr(program, '/'), *named = getenv("RIDGE_PLUGIN_PATH");
    char folder[8192];
    for (const char *at = named ? named : ""; *at; at += at[0] == ':') {
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof(folder), "%.*s", (int)length, at);
        hash = hash_folder(hash, folder);
        at += length;
    }
    for (size_t k = 0; slash && k < sizeof(folders) / sizeof(folders[0]); k++) {
        snprintf(folder, sizeof(folder), "%.*s/%s", (int)(slash - program), program, folders[k]);
        hash = hash_folder(hash, folder);
    }
    return hash;
}

enum status build_probe(struct build_record *build, struct arena *arena, struct error *err)
{
    char program[4096];
    uint64_t hash;
    (void)arena; /* everything else is static */
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0)
        return FAIL(err, STATUS_FAILED, "/proc/self/exe cannot be read: is /proc mounted?");
    program[length] = '\0';
    TRY(hash64_file("/proc/self/exe", &hash, err));
    *build = (struct build_record){
        .version = build_info.version,
        .git = build_info.commit,
        .config = build_info.config,
        .compiler = build_info.compiler,
        .flags = build_info.flags,
        .features = build_info.features,
    };
    hash64_hex(hash_plugins(hash, program), build->uid);
    return STATUS_OK;
}
