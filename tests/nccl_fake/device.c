/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA runtime that is the host, as the program has opened it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/host/api.h"
#include "tests/lib/device_symbol.h"
#include "tests/nccl_fake/fake.h"

/* Without it there is no device, and no test. */
static void *needed(const char *name)
{
    void *found = device_symbol(name);
    if (!found) {
        fprintf(stderr, "the made NCCL finds no %s in the plug-in cuda\n", name);
        abort();
    }
    return found;
}

int device_enqueue(void *stream, int (*work)(void *), void *context)
{
    api_enqueue_entry *entry;
    void *found = needed("api_enqueue");
    memcpy(&entry, &found, sizeof(found));
    return entry(stream, work, context);
}

static int move(const char *name, void *to, const void *from, size_t bytes)
{
    api_move_entry *entry;
    void *found = needed(name);
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
    void *found = needed("api_device");
    memcpy(&entry, &found, sizeof(found));
    return entry();
}
