/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lib/sample_plugin.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what, const char *path)
{
    perror(path);
    fprintf(stderr, "%s: build it with make -C tests/plugin_sample, set RIDGE_SAMPLE_PLUGIN\n",
            what);
    abort();
}

static void beside_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
    size_t used = strlen(path);
    snprintf(path + used, size - used, "/plugin_sample/sample.so");
}

const char *sample_plugin_path(void)
{
    static char path[PATH_MAX];
    const char *named = getenv("RIDGE_SAMPLE_PLUGIN");
    if (named)
        snprintf(path, sizeof(path), "%s", named);
    else
        beside_program(path, sizeof(path));
    if (access(path, R_OK) != 0)
        give_up("no sample plug-in", path);
    return path;
}

void folder_with_sample(const char *name, char *folder, size_t size)
{
    char to[PATH_MAX], from[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, size, "%s/ridge-plugin-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        give_up("no temporary folder", folder);
    if (!realpath(sample_plugin_path(), from))
        give_up("no sample plug-in", sample_plugin_path());
    snprintf(to, sizeof(to), "%s/%s", folder, name);
    if (symlink(from, to) != 0)
        give_up("cannot link", to);
}

void folder_add_file(const char *folder, const char *name, const char *contents)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(contents, file) < 0 || fclose(file) != 0)
        give_up("cannot write", path);
}

void folder_remove(const char *folder)
{
    char path[PATH_MAX];
    DIR *list = opendir(folder);
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (list)
        closedir(list);
    rmdir(folder);
}
