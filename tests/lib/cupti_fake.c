/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/cupti_fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/plugin_open.h"

const char *fake_path(void)
{
    static char path[512];
    const char *build = getenv("RIDGE_BUILD");
    snprintf(path, sizeof(path), "%s/tests/cupti_fake/fake.so", build ? build : "build/release");
    return path;
}

const struct fake_control *fake_open(void)
{
    fake_control_entry *entry;
    void *library = dlopen(fake_path(), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "fake_control") : NULL;
    if (!symbol)
        return NULL;
    memcpy(&entry, &symbol, sizeof(entry));
    return entry();
}

const struct cupti_backend *cupti_plugin(char *reason, size_t size)
{
    static const struct plugin_wanted plugin = {"profilers", "cupti", "ridge_cupti", "libcupti",
                                                ""};
    ridge_cupti_entry *entry;
    void *symbol = plugin_open(&plugin, reason, size);
    if (!symbol)
        return NULL;
    memcpy(&entry, &symbol, sizeof(entry));
    return entry();
}
