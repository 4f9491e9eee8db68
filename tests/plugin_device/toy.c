/* SPDX-License-Identifier: Apache-2.0
 *
 * A device outside ridge's tree: what a hardware vendor writes first, on one page. The toy computes
 * on the host, in memory of its own, and at once, so that its streams have nothing to remember. It
 * fills the part of the table that every device needs (engine/run/device.h); what is left NULL
 * ridge does without. For ridge's own tests the environment changes the table:
 *   RIDGE_TOY_LACKS=wait   the function of this name is missing
 *   RIDGE_TOY_NAME=a:b     the device's name */
#define _POSIX_C_SOURCE 200809L
#include "engine/run/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNITS = 1, MEMORY_BYTES = 1 << 30 };

static const struct plugin_host *host; /* set at the entry */

/* ---- the device ---- */

static int toy_count(struct error *why)
{
    (void)why; /* where there is none: host->refuse(why, ...) and 0 */
    return 2;
}

static enum status toy_open(struct device *device, struct error *err)
{
    (void)err;
    struct device_properties *p = &device->properties;
    snprintf(p->name, sizeof(p->name), "Toy");
    p->units = UNITS;
    p->memory_bytes = p->free_bytes = MEMORY_BYTES;
    return STATUS_OK;
}

static void toy_close(struct device *device)
{
    (void)device;
}

static enum status toy_bind(const struct device *device, struct error *err)
{
    (void)device;
    (void)err;
    return STATUS_OK;
}

/* ---- memory ---- */

static enum status toy_alloc(const struct device *device, size_t bytes, void **memory,
                             struct error *err)
{
    (void)device;
    if (posix_memalign(memory, ALIGN_DEVICE, bytes ? bytes : 1) == 0)
        return STATUS_OK;
    *memory = NULL;
    return host->refuse(err, STATUS_NO_MEMORY, "the toy has no memory for %zu bytes", bytes);
}

static void toy_free(const struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

/* ---- queues ---- */

static enum status toy_stream_new(const struct device *device, void **stream, struct error *err)
{
    return toy_alloc(device, 1, stream, err);
}

static enum status toy_wait(const struct device *device, void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    return STATUS_OK;
}

static enum status toy_copy(const struct device *device, void *to, const void *from, size_t bytes,
                            enum device_copy direction, void *stream, struct error *err)
{
    (void)direction;
    memcpy(to, from, bytes);
    return toy_wait(device, stream, err);
}

static enum status toy_fill(const struct device *device, void *memory, int byte, size_t bytes,
                            void *stream, struct error *err)
{
    memset(memory, byte, bytes);
    return toy_wait(device, stream, err);
}

/* ---- events ---- */

static enum status toy_event_new(const struct device *device, void **event, struct error *err)
{
    return toy_alloc(device, sizeof(struct timespec), event, err);
}

static enum status toy_event_record(const struct device *device, void *event, void *stream,
                                    struct error *err)
{
    clock_gettime(CLOCK_MONOTONIC, event);
    return toy_wait(device, stream, err);
}

static enum status toy_event_elapsed(const struct device *device, void *from, void *to, double *ns,
                                     struct error *err)
{
    const struct timespec *a = from, *b = to;
    *ns = (double)(b->tv_sec - a->tv_sec) * 1e9 + (double)(b->tv_nsec - a->tv_nsec);
    return toy_wait(device, NULL, err);
}

static struct device_kind toy = {
    .size = sizeof(struct device_kind),
    .name = "toy",
    .count = toy_count,
    .open = toy_open,
    .close = toy_close,
    .bind = toy_bind,
    .alloc = toy_alloc,
    .free = toy_free,
    .alloc_host = toy_alloc,
    .free_host = toy_free,
    .stream_new = toy_stream_new,
    .stream_free = toy_free,
    .wait = toy_wait,
    .copy = toy_copy,
    .fill = toy_fill,
    .event_new = toy_event_new,
    .event_free = toy_free,
    .event_record = toy_event_record,
    .event_elapsed = toy_event_elapsed,
};

/* ---- a kernel for it ---- */

struct kernel_state {
    int64_t count;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    if (q->in[0].dtype != DTYPE_F32)
        return host->refuse(why, STATUS_UNSUPPORTED, "only f32");
    if (q->node->post_count)
        return host->refuse(why, STATUS_UNSUPPORTED, "no fused epilogue");
    if (!host->desc_is_dense(&q->in[0]) || !host->desc_same_memory(&q->in[0], &q->out[0]))
        return host->refuse(why, STATUS_UNSUPPORTED, "input and output differ in layout");
    state->count = shape_count(&q->in[0].shape);
    return STATUS_OK;
}

/* Puts its work into args->stream, which is one of toy_stream_new, and does not wait. */
static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const float *x = args->in[0];
    float *y = args->out[0];
    for (int64_t k = 0; k < state->count; k++)
        y[k] = x[k] < 0 ? 0 : x[k]; /* keeps NaN */
}

static const struct kernel relu = {
    .name = "toy_relu",
    .provider = "toy",
    .device = "toy",
    .ops = OPS("Relu"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};

/* ---- the entry ---- */

static const struct kernel *const kernels[] = {&relu};
static const struct device_kind *const devices[] = {&toy};
static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "toy",
    .version = "1.0",
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
    .devices = devices,
    .device_count = ARRAY_COUNT(devices),
};

/* For tests: a table with a hole. */
#define LACKS(hook, name) (strcmp(name, #hook) == 0 ? (void)(toy.hook = NULL) : (void)0)
static void take_away(const char *name)
{
    LACKS(count, name);
    LACKS(bind, name);
    LACKS(wait, name);
    LACKS(event_elapsed, name);
}

const struct plugin *ridge_plugin(const struct plugin_host *ridge, struct error *why)
{
    const char *lacks = getenv("RIDGE_TOY_LACKS"), *named = getenv("RIDGE_TOY_NAME");
    host = ridge;
    if (ridge->abi != PLUGIN_ABI) {
        host->refuse(why, STATUS_UNSUPPORTED, "built for another ridge: build it again");
        return NULL;
    }
    if (lacks)
        take_away(lacks);
    if (named)
        toy.name = named;
    return &table;
}
