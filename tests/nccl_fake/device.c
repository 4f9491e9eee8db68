/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA runtime that is the host, as the program has opened it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/host/api.h"
#include "tests/nccl_fake/fake.h"

enum { PATH_SIZE = 4096 };

static int is_made_device(struct dl_phdr_info *info, size_t size, void *path)
{
    static const char end[] = "/cuda.so";
    size_t length = strlen(info->dlpi_name);
    (void)size;
    if (length < sizeof(end) || length >= PATH_SIZE ||
        strcmp(info->dlpi_name + length - (sizeof(end) - 1), end) != 0)
        return 0;
    memcpy(path, info->dlpi_name, length + 1);
    return 1;
}

/* Without it there is no device, and no test. */
static void *symbol(const char *name)
{
    char path[PATH_SIZE] = "";
    dl_iterate_phdr(is_made_device, path);
    void *library = path[0] ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "the made NCCL finds no %s in \"%s\"\n", name, path);
        abort();
    }
    dlclose(library);
    return found;
}

int device_enqueue(void *stream, int (*work)(void *), void *context)
{
    api_enqueue_entry *entry;
    void *found = symbol("api_enqueue");
    memcpy(&entry, &found, sizeof(found));
    return entry(stream, work, context);
}

static int move(const char *name, void *to, const void *from, size_t bytes)
{
    api_move_entry *entry;
    void *found = symbol(name);
    memcpy(&entry, &found, sizeof(found));
    return entry(to, from, bytes);
}

int device_load(void *to, const void *from, size_t bytes)
{
    return move("api_load", to, from, bytes);
}

int device_store(void *to, const void *from, size_t bytes)
{
    return move("api_store", to, from, bytes);
}

int device_current(void)
{
    api_device_entry *entry;
    void *found = symbol("api_device");
    memcpy(&entry, &found, sizeof(found));
    return entry();
}
