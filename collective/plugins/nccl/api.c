/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/plugins/nccl/api.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/registry.h"
#include "base/system/library.h"

/* The first with communicators that do not block, without which there are no deadlines. */
enum { VERSION_LEAST = NCCL_VERSION(2, 14, 3) };

#define FILE_NAME "libnccl.so.2"

static const struct library_symbol symbols[] = {
#define X(field, symbol) {#symbol, offsetof(struct nccl_api, field)},
    NCCL_CALLS(X)
#undef X
};

static void write_version(int version, char *text, size_t size)
{
    bool wide = version >= 10000; /* from 2.9 on */
    int major = version / (wide ? 10000 : 1000), minor = version / 100 % (wide ? 100 : 10);
    snprintf(text, size, "%d.%d.%d", major, minor, version % 100);
}

enum status nccl_api_open(struct nccl_api *api, struct error *why)
{
    /* Of the toolkit that this was built with: where the linker does not look. */
    static const char *const others[] = {NCCL_FOLDER "/lib/" FILE_NAME,
                                         NCCL_FOLDER "/lib64/" FILE_NAME};
    struct error absent, ignored;
    void *library;
    int version = 0;
    char text[32];
    if (library_open_one(FILE_NAME, &library, &absent) != STATUS_OK &&
        library_open(others, ARRAY_COUNT(others), &library, &ignored) != STATUS_OK)
        return UNSUPPORTED(why,
                           "%.300s: install NCCL 2 (libnccl2, or pip install nvidia-nccl-cu13), or "
                           "put its folder into LD_LIBRARY_PATH",
                           absent.message);
    const char *missing = library_fill(library, symbols, ARRAY_COUNT(symbols), api);
    if (missing)
        return UNSUPPORTED(why, "%s has no %s: a newer one is needed", FILE_NAME, missing);
    if (api->version(&version) != ncclSuccess)
        return UNSUPPORTED(why, "%s does not say which version it is", FILE_NAME);
    write_version(version, text, sizeof(text));
    if (version < VERSION_LEAST)
        return UNSUPPORTED(why, "%s is version %s: 2.14.3 or newer is needed", FILE_NAME, text);
    return STATUS_OK;
}

void nccl_version_text(const struct nccl_api *api, char *text, size_t size)
{
    int version = 0;
    api->version(&version);
    write_version(version, text, size);
}
