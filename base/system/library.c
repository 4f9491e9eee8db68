/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/cpus.h"

/* A folder or a pipe has the name of a path; opening a pipe would wait. */
static bool is_odd_file(const char *file)
{
    struct stat found;
    return strchr(file, '/') && stat(file, &found) == 0 && !S_ISREG(found.st_mode);
}

static bool exists(const char *file, const char *message)
{
    struct stat found;
    if (strchr(file, '/'))
        return stat(file, &found) == 0;
    return strncmp(message, file, strlen(file)) != 0; /* the linker complains of another file */
}

enum status library_open_one(const char *file, void **library, struct error *why)
{
    struct cpus cpus;
    *library = NULL;
    if (is_odd_file(file))
        return UNSUPPORTED(why, "it is no regular file");
    bool known = cpus_of_thread(&cpus);
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (known)
        cpus_bind(pthread_self(), &cpus);
    return *library ? STATUS_OK : UNSUPPORTED(why, "%s", dlerror());
}

enum status library_open(const char *const *candidates, int count, void **library,
                         struct error *why)
{
    struct error last = {.code = STATUS_OK};
    bool named = false; /* the reason is that of a file which exists */
    for (int k = 0; k < count; k++) {
        struct error error;
        if (library_open_one(candidates[k], library, &error) == STATUS_OK)
            return STATUS_OK;
        if (!named)
            last = error;
        named = named || exists(candidates[k], error.message);
    }
    return UNSUPPORTED(why, "%s", last.message);
}

void *library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

const char *library_fill(void *library, const struct library_symbol *symbols, int count,
                         void *table)
{
    for (int k = 0; k < count; k++) {
        void *address = dlsym(library, symbols[k].name);
        if (!address)
            return symbols[k].name;
        /* POSIX's way round ISO C's rule on casts from objects to functions. */
        memcpy((char *)table + symbols[k].offset, &address, sizeof(address));
    }
    return NULL;
}

void library_close(void *library)
{
    dlclose(library);
}
