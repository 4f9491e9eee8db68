/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/plugin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/registry.h"

enum { PATH_SIZE = 4096 };

/* Why the build left the plug-in out: ABSENT(name, reason) each. */
static const struct left_out {
    const char *name, *reason;
} left_out[] = {
#if __has_include("absent_plugins.inc")
#define ABSENT(name, reason) {name, reason},
#include "absent_plugins.inc"
#undef ABSENT
#endif
    {"", ""},
};

static void *open_in(const char *name, const char *folder, size_t length, char *path)
{
    snprintf(path, PATH_SIZE, "%.*s/profilers/%s.so", (int)length, folder, name);
    struct stat file; /* opening a pipe would wait */
    bool openable = stat(path, &file) == 0 && S_ISREG(file.st_mode);
    return openable ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* *path: the last that was tried. */
static void *open_library(const char *name, char *path)
{
    char program[PATH_SIZE - 128];
    const char *named = getenv("RIDGE_PLUGIN_PATH");
    void *library = NULL;
    for (const char *at = named ? named : ""; *at && !library;) {
        size_t length = strcspn(at, ":");
        library = open_in(name, at, length, path);
        at += length + (at[length] == ':');
    }
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (library || size <= 0)
        return library;
    program[size] = '\0';
    char *slash = strrchr(program, '/');
    static const char *const folders[] = {"/plugins", "/build/release/plugins"};
    for (int k = 0; slash && k < ARRAY_COUNT(folders) && !library; k++) {
        char folder[PATH_SIZE - 96];
        snprintf(folder, sizeof(folder), "%.*s%s", (int)(slash - program), program, folders[k]);
        library = open_in(name, folder, strlen(folder), path);
    }
    return library;
}

static void say_absent(const char *name, char *reason, size_t size)
{
    for (int k = 0; k < ARRAY_COUNT(left_out); k++)
        if (strcmp(left_out[k].name, name) == 0) {
            snprintf(reason, size, "%s", left_out[k].reason);
            return;
        }
    snprintf(reason, size, "plugins/profilers/%s.so is not beside the program: make", name);
}

void *profiler_plugin_open(const struct profiler_plugin *plugin, char *reason, size_t size)
{
    char path[PATH_SIZE] = "";
    void *library = open_library(plugin->name, path);
    const char *why = !library && path[0] && access(path, F_OK) == 0 ? dlerror() : NULL;
    void *symbol = library ? dlsym(library, plugin->symbol) : NULL;
    if (symbol)
        return symbol;
    if (library)
        snprintf(reason, size, "%.400s is no plug-in of this ridge: make", path);
    else if (!why)
        say_absent(plugin->name, reason, size);
    else
        snprintf(reason, size, "%s%s%s", why, strstr(why, plugin->library) ? ": " : "",
                 strstr(why, plugin->library) ? plugin->fix : "");
    return NULL;
}
