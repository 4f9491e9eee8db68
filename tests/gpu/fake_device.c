/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/fake_device.h"

#include <stdlib.h>
#include <string.h>

struct fake_script fake;

void fake_reset(int fail_at)
{
    fake = (struct fake_script){.fail_at = fail_at};
}

bool fake_fails(const char *name)
{
    if (++fake.calls != fake.fail_at)
        return false;
    fake.failed = name;
    return true;
}

static enum status alloc(const struct device *device, size_t bytes, void **memory,
                         struct error *err)
{
    (void)device;
    *memory = NULL;
    if (fake_fails("alloc"))
        return FAIL(err, STATUS_NO_MEMORY, "alloc of %zu bytes: scripted", bytes);
    *memory = malloc(bytes + 1);
    if (!*memory)
        return FAIL_NO_MEMORY(err);
    fake.live++;
    return STATUS_OK;
}

static void free_memory(const struct device *device, void *memory)
{
    (void)device;
    if (memory)
        fake.live--;
    free(memory);
}

static enum status copy(const struct device *device, void *to, const void *from, size_t bytes,
                        enum device_copy direction, void *stream, struct error *err)
{
    (void)device;
    (void)direction;
    (void)stream;
    if (fake_fails("copy"))
        return FAIL(err, STATUS_FAILED, "copy of %zu bytes: scripted", bytes);
    memcpy(to, from, bytes);
    return STATUS_OK;
}

static enum status wait_for(const struct device *device, void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    return fake_fails("wait") ? FAIL(err, STATUS_FAILED, "wait: scripted") : STATUS_OK;
}

static const struct device_kind kind = {
    .size = sizeof(kind),
    .name = "cuda",
    .alloc = alloc,
    .free = free_memory,
    .copy = copy,
    .wait = wait_for,
};

void fake_device(struct device *device)
{
    *device = (struct device){.kind = &kind};
    device->properties.major = 9;
}
