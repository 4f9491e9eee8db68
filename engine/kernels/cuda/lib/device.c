/* SPDX-License-Identifier: Apache-2.0
 *
 * The device "cuda". It shares the driver's primary context with the libraries of other plug-ins:
 * memory, streams and events are theirs as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cuda/lib/cuda.h"

enum { MESSAGE = 200, DEVICES_MAX = 64 };

/* Why a device was given up; empty: it was not. */
static char given_up[DEVICES_MAX][MESSAGE];

/* ---- errors ---- */

/* The driver ends the context, which is the process' only one on the device. */
static bool is_lost(int error)
{
    static const int errors[] = {CUDA_ECC,
                                 CUDA_NVLINK,
                                 CUDA_CONTAINED,
                                 CUDA_ILLEGAL_ADDRESS,
                                 CUDA_LAUNCH_TIMEOUT,
                                 CUDA_CONTEXT_DESTROYED,
                                 CUDA_ASSERT,
                                 CUDA_STACK_ERROR,
                                 CUDA_ILLEGAL_INSTRUCTION,
                                 CUDA_MISALIGNED_ADDRESS,
                                 CUDA_ADDRESS_SPACE,
                                 CUDA_INVALID_PC,
                                 CUDA_LAUNCH_FAILURE,
                                 CUDA_TENSOR_MEMORY_LEAK,
                                 CUDA_EXTERNAL_DEVICE,
                                 CUDA_UNKNOWN};
    for (int k = 0; k < ARRAY_COUNT(errors); k++)
        if (errors[k] == error)
            return true;
    return false;
}

/* What to do about a machine that is not set up; empty: nothing is known. */
static const char *advice(int error)
{
    switch (error) {
    case CUDA_SYSTEM_NOT_READY:
        return ": on a machine with NVSwitch start the fabric manager of the driver's version "
               "(systemctl start nvidia-fabricmanager); or use --device cpu";
    case CUDA_DRIVER_MISMATCH:
        return ": the driver's kernel module and its libraries are of different versions: reboot "
               "after an update of the driver, in a container start it anew; or use --device cpu";
    case CUDA_COMPAT_NOT_SUPPORTED:
        return ": the package for forward compatibility (cuda-compat) works on data-centre cards "
               "only: take it out of LD_LIBRARY_PATH and update the driver; or use --device cpu";
    default:
        return "";
    }
}

enum status cuda_check(int error, const char *what, struct error *err)
{
    if (error == CUDA_DONE)
        return STATUS_OK;
    const char *name = cuda_api.error_name(error), *text = cuda_api.error_text(error);
    return cuda_host->refuse(err,
                             error == CUDA_OUT_OF_MEMORY ? STATUS_NO_MEMORY
                             : is_lost(error)            ? STATUS_LOST
                                                         : STATUS_FAILED,
                             "%s: %s (%s)%s", what, text ? text : "unknown error",
                             name ? name : "?", advice(error));
}

enum status cuda_allow_shared(const struct device *device, const void *kernel, struct error *err)
{
    return cuda_check(cuda_api.allow_shared(kernel, device->properties.shared_bytes),
                      "asking for shared memory", err);
}

static bool is_given_up(const struct device *device)
{
    return device->index < DEVICES_MAX && given_up[device->index][0];
}

/* For all that might wait for what never ends. */
static enum status check_there(const struct device *device, struct error *err)
{
    if (!is_given_up(device))
        return STATUS_OK;
    return cuda_host->refuse(err, STATUS_LOST, "%s", given_up[device->index]);
}

static void give_up(const struct device *device, const char *why)
{
    if (device->index < DEVICES_MAX && !is_given_up(device))
        snprintf(given_up[device->index], sizeof(given_up[0]), "%s", why);
}

/* ---- finding and opening ---- */

static void version_text(int version, char text[32])
{
    snprintf(text, 32, "%d.%d", version / 1000, version % 1000 / 10);
}

/* The runtime says "insufficient driver" also when there is none: the versions tell which. */
static void explain_driver(struct error *why)
{
    int driver = 0, runtime = 0;
    char have[32], want[32];
    if (cuda_api.driver_version(&driver) != CUDA_DONE)
        driver = 0;
    cuda_api.runtime_version(&runtime);
    version_text(driver, have);
    version_text(runtime, want);
    if (driver == 0)
        cuda_host->refuse(why, STATUS_FAILED,
                          "no CUDA driver (libcuda.so.1 cannot be opened): install the NVIDIA "
                          "driver for CUDA %s or newer (Debian: apt-get install nvidia-driver), in "
                          "a container pass the GPU through; or use --device cpu",
                          want);
    else
        cuda_host->refuse(why, STATUS_FAILED,
                          "the NVIDIA driver is too old: it serves CUDA %s, this plug-in needs %s: "
                          "update the driver, or use --device cpu",
                          have, want);
}

static int count(struct error *why)
{
    int devices = 0;
    int error = cuda_api.device_count(&devices);
    if (error == CUDA_DONE && devices > 0)
        return devices;
    if (error == CUDA_OLD_DRIVER)
        explain_driver(why);
    else if (error == CUDA_NO_DEVICE || error == CUDA_DONE)
        cuda_host->refuse(why, STATUS_FAILED,
                          "the CUDA driver is there but no GPU is: check nvidia-smi, "
                          "CUDA_VISIBLE_DEVICES and the access to /dev/nvidia*; or use --device "
                          "cpu");
    else
        cuda_check(error, "looking for GPUs", why);
    return 0;
}

static enum status read_properties(struct device *device, struct error *err)
{
    struct cuda_facts facts = {0};
    struct device_properties *p = &device->properties;
    int driver = 0, runtime = 0;
    TRY(cuda_check(cuda_api.facts(&facts, device->index), "asking for the GPU's properties", err));
    TRY(cuda_check(cuda_api.driver_version(&driver), "asking for the driver's version", err));
    TRY(cuda_check(cuda_api.runtime_version(&runtime), "asking for the runtime's version", err));
    TRY(cuda_check(cuda_api.memory_info(&p->free_bytes, &p->memory_bytes),
                   "asking for the GPU's memory", err));
    memcpy(p->name, facts.name, sizeof(p->name));
    memcpy(p->bus, facts.bus, sizeof(p->bus));
    version_text(driver, p->driver);
    version_text(runtime, p->runtime);
    p->major = facts.major;
    p->minor = facts.minor;
    p->units = facts.units;
    p->cache_bytes = (size_t)facts.cache_bytes;
    p->shared_bytes = (size_t)facts.shared_bytes;
    p->clock_hz = facts.clock_khz * 1e3;
    p->memory_bytes_per_s = 2.0 * facts.memory_khz * 1e3 * facts.bus_bits / 8; /* both edges */
    return STATUS_OK;
}

static enum status bind(const struct device *device, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.set_device(device->index), "choosing the GPU", err);
}

static enum status open_cuda(struct device *device, struct error *err)
{
    TRY(bind(device, err));
    TRY(read_properties(device, err));
    if (device->properties.major < 8)
        return cuda_host->refuse(err, STATUS_FAILED,
                                 "%s has compute capability %d.%d; this plug-in holds code for 8.0 "
                                 "and newer: use --device cpu",
                                 device->properties.name, device->properties.major,
                                 device->properties.minor);
    return STATUS_OK;
}

/* The primary context stays: libraries that use it too could not bear its end. */
static void close_cuda(struct device *device)
{
    (void)device;
}

/* ---- memory ---- */

static enum status alloc(const struct device *device, size_t bytes, void **memory,
                         struct error *err)
{
    TRY(check_there(device, err));
    size_t free_bytes = 0, total = 0;
    int error = cuda_api.malloc(memory, bytes ? bytes : 1);
    if (error != CUDA_OUT_OF_MEMORY)
        return cuda_check(error, "allocating memory of the GPU", err);
    cuda_api.memory_info(&free_bytes, &total);
    return cuda_host->refuse(err, STATUS_NO_MEMORY,
                             "out of memory on GPU %d: asked for %.1f MB, %.1f of %.1f MB are free",
                             device->index, (double)bytes * 1e-6, (double)free_bytes * 1e-6,
                             (double)total * 1e-6);
}

static void free_memory(const struct device *device, void *memory)
{
    if (!is_given_up(device))
        cuda_api.free(memory);
}

static enum status alloc_host(const struct device *device, size_t bytes, void **memory,
                              struct error *err)
{
    TRY(check_there(device, err));
    char what[64];
    snprintf(what, sizeof(what), "pinning %.1f MB of the host's memory", (double)bytes * 1e-6);
    return cuda_check(cuda_api.malloc_host(memory, bytes ? bytes : 1), what, err);
}

static void free_host(const struct device *device, void *memory)
{
    if (!is_given_up(device))
        cuda_api.free_host(memory);
}

/* ---- queues ---- */

static enum status stream_new(const struct device *device, void **stream, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.stream_create(stream), "making a stream", err);
}

static void stream_free(const struct device *device, void *stream)
{
    if (!is_given_up(device))
        cuda_api.stream_destroy(stream);
}

static enum status wait(const struct device *device, void *stream, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.stream_synchronize(stream), "waiting for the GPU", err);
}

static enum status poll(const struct device *device, void *stream, bool *done, struct error *err)
{
    TRY(check_there(device, err));
    int error = cuda_api.stream_query(stream);
    *done = error != CUDA_NOT_READY;
    return *done ? cuda_check(error, "asking the GPU", err) : STATUS_OK;
}

static enum status copy(const struct device *device, void *to, const void *from, size_t bytes,
                        enum device_copy direction, void *stream, struct error *err)
{
    TRY(check_there(device, err));
    static const enum cuda_copy kinds[] = {[COPY_TO_DEVICE] = CUDA_TO_DEVICE,
                                           [COPY_TO_HOST] = CUDA_TO_HOST,
                                           [COPY_WITHIN] = CUDA_WITHIN};
    if (bytes == 0)
        return STATUS_OK;
    return cuda_check(cuda_api.copy(to, from, bytes, kinds[direction], stream), "copying", err);
}

static enum status fill(const struct device *device, void *memory, int byte, size_t bytes,
                        void *stream, struct error *err)
{
    TRY(check_there(device, err));
    if (bytes == 0)
        return STATUS_OK;
    return cuda_check(cuda_api.set(memory, byte, bytes, stream), "filling memory", err);
}

static enum status event_new(const struct device *device, void **event, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.event_create(event), "making an event", err);
}

static void event_free(const struct device *device, void *event)
{
    if (!is_given_up(device))
        cuda_api.event_destroy(event);
}

static enum status event_record(const struct device *device, void *event, void *stream,
                                struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.event_record(event, stream), "recording an event", err);
}

static enum status mark(const struct device *device, void *event, void *stream, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.event_mark(event, stream), "marking a place of a stream", err);
}

static enum status follow(const struct device *device, void *stream, void *event, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.stream_follow(stream, event), "ordering two streams", err);
}

static enum status event_elapsed(const struct device *device, void *from, void *to, double *ns,
                                 struct error *err)
{
    TRY(check_there(device, err));
    float ms = 0;
    TRY(cuda_check(cuda_api.event_elapsed(&ms, from, to), "reading an event", err));
    *ns = (double)ms * 1e6;
    return STATUS_OK;
}

/* ---- capture ---- */

struct device_graph {
    void *exec;
};

static enum status capture_begin(const struct device *device, void *stream, struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.capture_begin(stream), "beginning a capture", err);
}

/* The graph itself is not needed once there is something to launch. */
static enum status capture_end(const struct device *device, void *stream,
                               struct device_graph **graph, struct error *err)
{
    TRY(check_there(device, err));
    void *captured = NULL;
    *graph = NULL;
    TRY(cuda_check(cuda_api.capture_end(stream, &captured), "ending a capture", err));
    struct device_graph *made = calloc(1, sizeof(*made));
    enum status status =
        made ? cuda_check(cuda_api.graph_instantiate(&made->exec, captured), "making a graph", err)
             : cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    cuda_api.graph_destroy(captured);
    if (status == STATUS_OK)
        *graph = made;
    else
        free(made);
    return status;
}

static enum status replay(const struct device *device, struct device_graph *graph, void *stream,
                          struct error *err)
{
    TRY(check_there(device, err));
    return cuda_check(cuda_api.graph_launch(graph->exec, stream), "launching a graph", err);
}

static void forget_graph(const struct device *device, struct device_graph *graph)
{
    if (!is_given_up(device))
        cuda_api.graph_exec_destroy(graph->exec);
    free(graph);
}

/* ---- launching ---- */

/* RIDGE_LAUNCH_EARLY=0: kernels follow each other as a stream has it. */
static bool may_be_early(void)
{
    const char *text = getenv("RIDGE_LAUNCH_EARLY");
    return !text || strcmp(text, "0") != 0;
}

void cuda_launch(const struct cuda_launch *given, const struct kernel_args *args)
{
    char what[MESSAGE];
    struct cuda_launch launch = *given, *l = &launch;
    if (l->grid.x == 0 || l->grid.y == 0 || l->grid.z == 0)
        return;
    l->early = l->early && may_be_early();
    int error = cuda_api.launch(l, args->stream);
    if (error == CUDA_DONE || !args->err || args->err->code != STATUS_OK)
        return;
    snprintf(what, sizeof(what), "launching %s, grid %u x %u x %u of %u x %u x %u", l->name,
             l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z);
    cuda_check(error, what, args->err);
}

const struct device_kind cuda_device = {
    .size = sizeof(struct device_kind),
    .name = "cuda",
    .count = count,
    .open = open_cuda,
    .close = close_cuda,
    .bind = bind,
    .alloc = alloc,
    .free = free_memory,
    .alloc_host = alloc_host,
    .free_host = free_host,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .wait = wait,
    .copy = copy,
    .fill = fill,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .replay = replay,
    .graph_free = forget_graph,
    .activate = cuda_activate,
    .poll = poll,
    .give_up = give_up,
    .mark = mark,
    .follow = follow,
    .softmax = cuda_softmax,
    .pad_channels = cuda_pad_channels,
};
