/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/plugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/library.h"
#include "base/system/plugin_files.h"

enum { PATH_SIZE = 4096 };

struct search {
    const char *name;
    void *library;
    bool exists; /* one of the files; `why` says what is wrong with it */
    struct error why;
    char path[PATH_SIZE]; /* the last that was tried */
};

static void open_in(const char *folder, bool named, void *context)
{
    struct search *s = context;
    struct error why;
    (void)named;
    if (s->library)
        return;
    snprintf(s->path, sizeof(s->path), "%s/profilers/%s.so", folder, s->name);
    if (library_open_one(s->path, &s->library, &why) == STATUS_OK || access(s->path, F_OK) != 0)
        return;
    s->exists = true;
    s->why = why;
}

void *profiler_plugin_open(const struct profiler_plugin *plugin, char *reason, size_t size)
{
    struct search s = {.name = plugin->name};
    plugin_folders_each(open_in, &s);
    void *symbol = s.library ? library_symbol(s.library, plugin->symbol) : NULL;
    if (symbol)
        return symbol;
    const char *left_out = plugin_left_out(plugin->name);
    bool missing = strstr(s.why.message, plugin->library) != NULL; /* the library behind it */
    if (s.library)
        snprintf(reason, size, "%.400s is no plug-in of this ridge: make", s.path);
    else if (s.exists)
        snprintf(reason, size, "%s%s%s", s.why.message, missing ? ": " : "",
                 missing ? plugin->fix : "");
    else if (left_out)
        snprintf(reason, size, "%s", left_out);
    else
        snprintf(reason, size, "plugins/profilers/%s.so is not beside the program: make",
                 plugin->name);
    return NULL;
}
