/* SPDX-License-Identifier: Apache-2.0
 *
 * The host itself. Its memory needs no copies, and its kernels have done their work when launch
 * returns: an executable on it uses alloc and free only. The rest is as true as it can be, so that
 * code for any device also runs here. */
#include <string.h>

#include "base/memory.h"
#include "base/registry.h"
#include "base/system/clock.h"
#include "engine/run/device.h"

static int count(struct error *why)
{
    (void)why;
    return 1;
}

static enum status open_cpu(struct device *device, struct error *err)
{
    (void)device;
    (void)err;
    return STATUS_OK;
}

static void close_cpu(struct device *device)
{
    (void)device;
}

static enum status bind(const struct device *device, struct error *err)
{
    (void)device;
    (void)err;
    return STATUS_OK;
}

static enum status alloc(const struct device *device, size_t bytes, void **memory,
                         struct error *err)
{
    (void)device;
    *memory = memory_alloc(bytes);
    return *memory ? STATUS_OK
                   : FAIL(err, STATUS_NO_MEMORY, "out of memory: %.1f MB", (double)bytes * 1e-6);
}

static void free_memory(const struct device *device, void *memory)
{
    (void)device;
    memory_free(memory);
}

static enum status stream_new(const struct device *device, void **stream, struct error *err)
{
    (void)device;
    (void)err;
    *stream = NULL;
    return STATUS_OK;
}

static void nothing_to_free(const struct device *device, void *thing)
{
    (void)device;
    (void)thing;
}

static enum status wait(const struct device *device, void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    return STATUS_OK;
}

static enum status copy(const struct device *device, void *to, const void *from, size_t bytes,
                        enum device_copy direction, void *stream, struct error *err)
{
    (void)device;
    (void)direction;
    (void)stream;
    (void)err;
    memmove(to, from, bytes);
    return STATUS_OK;
}

static enum status fill(const struct device *device, void *memory, int byte, size_t bytes,
                        void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    memset(memory, byte, bytes);
    return STATUS_OK;
}

static enum status event_new(const struct device *device, void **event, struct error *err)
{
    return alloc(device, sizeof(uint64_t), event, err);
}

static enum status event_record(const struct device *device, void *event, void *stream,
                                struct error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    *(uint64_t *)event = clock_now_ns();
    return STATUS_OK;
}

static enum status event_elapsed(const struct device *device, void *from, void *to, double *ns,
                                 struct error *err)
{
    (void)device;
    (void)err;
    *ns = (double)(*(uint64_t *)to - *(uint64_t *)from);
    return STATUS_OK;
}

REGISTER(device_kind, cpu) = {
    .size = sizeof(struct device_kind),
    .name = "cpu",
    .is_host = true,
    .count = count,
    .open = open_cpu,
    .close = close_cpu,
    .bind = bind,
    .alloc = alloc,
    .free = free_memory,
    .alloc_host = alloc,
    .free_host = free_memory,
    .stream_new = stream_new,
    .stream_free = nothing_to_free,
    .wait = wait,
    .copy = copy,
    .fill = fill,
    .event_new = event_new,
    .event_free = free_memory,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
};
