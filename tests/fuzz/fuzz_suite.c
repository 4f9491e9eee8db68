/* SPDX-License-Identifier: Apache-2.0
 * The reader of suites on any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/suite/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_axis(const struct suite_axis *axis)
{
    for (int k = 0; k < axis->count; k++)
        if (!axis->values[k].text)
            abort();
    if (axis->count && (!axis->origin || !axis->name))
        abort();
}

static void check_entry(const struct suite_entry *entry)
{
    if (!entry->origin || !entry->workload == !entry->path)
        abort();
    for (int k = 0; k < KEY_COUNT; k++)
        check_axis(&entry->axes[k]);
    for (int k = 0; k < PARAM_MAX; k++)
        check_axis(&entry->params[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct suite suite;
    struct error err = {.message = ""};
    if (suite_parse("fuzz", (const char *)data, size, 4, &suite, &err) != STATUS_OK) {
        if (!memchr(err.message, '\0', sizeof(err.message)) || !err.message[0])
            abort(); /* a failure says why */
        return 0;
    }
    for (size_t k = 0; k < suite.count; k++)
        check_entry(&suite.entries[k]);
    for (int k = 0; k < KEY_COUNT; k++)
        check_axis(&suite.axes[k]);
    suite_release(&suite);
    return 0;
}
