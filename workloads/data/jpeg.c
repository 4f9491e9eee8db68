/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/jpeg.h"

#include <stdio.h>
#include <string.h>

#include "base/system/plugin_open.h"

const struct jpeg_backend *jpeg_open(char *reason, size_t size)
{
    static const struct plugin_wanted wanted = {"data", "jpeg", "ridge_jpeg", "libjpeg",
                                                "apt-get install libjpeg-dev, then make"};
    ridge_jpeg_entry *entry;
    void *symbol = plugin_open(&wanted, reason, size);
    if (!symbol)
        return NULL;
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct jpeg_backend *backend = entry();
    if (backend->abi == JPEG_ABI)
        return backend;
    snprintf(reason, size, "plugins/data/jpeg.so was built for another ridge: make");
    return NULL;
}
