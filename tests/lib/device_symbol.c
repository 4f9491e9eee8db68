/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lib/device_symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static int is_cuda_plugin(struct dl_phdr_info *info, size_t size, void *path)
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

void *device_symbol(const char *name)
{
    char path[PATH_SIZE];
    void *library =
        dl_iterate_phdr(is_cuda_plugin, path) ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!library)
        return NULL;
    void *found = dlsym(library, name);
    dlclose(library);
    return found;
}
