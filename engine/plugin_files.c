/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine/plugin_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"

enum { PATH_BYTES = 4096 };

static int is_library(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && strcmp(dot, ".so") == 0;
}

bool plugin_files_each(const char *folder, plugin_file_visit *visit, void *context)
{
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_library, alphasort);
    for (int k = 0; k < count; k++) {
        char path[PATH_BYTES + 300], name[256];
        size_t length = strlen(files[k]->d_name) - strlen(".so");
        snprintf(path, sizeof(path), "%s/%s", folder, files[k]->d_name);
        snprintf(name, sizeof(name), "%.*s", (int)length, files[k]->d_name);
        visit(path, name, context);
        free(files[k]);
    }
    free(files);
    return count >= 0;
}

static void each_named(plugin_folder_visit *visit, void *context)
{
    const char *path = getenv("RIDGE_PLUGIN_PATH");
    for (const char *at = path ? path : ""; *at;) {
        char folder[PATH_BYTES];
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof(folder), "%.*s", (int)length, at);
        if (length)
            visit(folder, true, context);
        at += length + (at[length] != '\0');
    }
}

void plugin_folders_each(plugin_folder_visit *visit, void *context)
{
    static const char *const folders[] = {"plugins", "build/release/plugins"};
    char program[PATH_BYTES];
    each_named(visit, context);
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return;
    *slash = '\0';
    for (int k = 0; k < ARRAY_COUNT(folders); k++) {
        char folder[PATH_BYTES + 32];
        snprintf(folder, sizeof(folder), "%s/%s", program, folders[k]);
        visit(folder, false, context);
    }
}
