/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/plugin_open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/library.h"
#include "base/system/plugin_files.h"

enum { PATH_SIZE = 4096 };

struct search {
    const struct plugin_wanted *wanted;
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
    snprintf(s->path, sizeof(s->path), "%s/%s/%s.so", folder, s->wanted->folder, s->wanted->name);
    if (library_open_one(s->path, &s->library, &why) == STATUS_OK || access(s->path, F_OK) != 0)
        return;
    s->exists = true;
    s->why = why;
}

void *plugin_open(const struct plugin_wanted *wanted, char *reason, size_t size)
{
    struct search s = {.wanted = wanted};
    plugin_folders_each(open_in, &s);
    void *symbol = s.library ? library_symbol(s.library, wanted->symbol) : NULL;
    if (symbol)
        return symbol;
    const char *left_out = plugin_left_out(wanted->name);
    bool missing = strstr(s.why.message, wanted->library) != NULL; /* the library behind it */
    if (s.library)
        snprintf(reason, size, "%.400s is no plug-in of this ridge: make", s.path);
    else if (s.exists)
        snprintf(reason, size, "%s%s%s", s.why.message, missing ? ": " : "",
                 missing ? wanted->fix : "");
    else if (left_out)
        snprintf(reason, size, "%s", left_out);
    else
        snprintf(reason, size, "plugins/%s/%s.so is not beside the program: make", wanted->folder,
                 wanted->name);
    return NULL;
}
