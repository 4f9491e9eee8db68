/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "profilers/lib/nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/registry.h"
#include "base/system/clock.h"
#include "base/system/library.h"

enum { LOOK_MS = 20, BUS_SIZE = 32 };

static const unsigned held_fields[HELD_COUNT] = {NVML_FIELD_HELD_BY_POWER, NVML_FIELD_HELD_BY_HEAT,
                                                 NVML_FIELD_HELD_BY_BOOST,
                                                 NVML_FIELD_HELD_BY_BOARD};

/* Counters that only grow; NAN: not reported. */
struct reading {
    uint64_t time_ns;
    double energy_j, held_s[HELD_COUNT];
};

/* What the looks add up to. */
struct looks {
    int64_t clocks, memory_clocks;
    double clock_sm, clock_sm_min, clock_memory, power_max, temperature_max;
    unsigned long long reasons;
    int64_t count;
};

struct nvml_watch {
    struct nvml_api api;
    nvml_device device;
    struct reading begin;
    struct nvml_seen seen;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    pthread_t thread;
    bool running, stop;
    struct looks looks;
};

/* ---- the library ---- */

#define SYMBOL(name, symbol, type, arguments) {symbol, offsetof(struct nvml_api, name)},

enum status nvml_load(const char *file, const char *driver, struct nvml_api *api, struct error *err)
{
    static const struct library_symbol symbols[] = {NVML_CALLS(SYMBOL)};
    static const struct library_symbol driver_symbols[] = {NVML_DRIVER_CALLS(SYMBOL)};
    /* The older name is deprecated since driver 535 and may go. */
    static const struct library_symbol reasons[] = {
        {"nvmlDeviceGetCurrentClocksEventReasons", offsetof(struct nvml_api, reasons)},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml_api, reasons)}};
    const char *name = file ? file : "libnvidia-ml.so.1";
    void *library;
    *api = (struct nvml_api){.has_cuda = false};
    if (library_open_one(name, &library, NULL) != STATUS_OK)
        return UNSUPPORTED(err, "no NVIDIA driver (%.200s): install NVIDIA's driver", name);
    const char *missing = library_fill(library, symbols, ARRAY_COUNT(symbols), api);
    if (!missing && library_fill(library, &reasons[0], 1, api))
        missing = library_fill(library, &reasons[1], 1, api);
    if (missing)
        return UNSUPPORTED(err, "NVML has no %s: install a newer driver", missing);
    api->has_cuda =
        library_open_one(driver ? driver : "libcuda.so.1", &library, NULL) == STATUS_OK &&
        !library_fill(library, driver_symbols, ARRAY_COUNT(driver_symbols), api);
    return STATUS_OK;
}

static enum status complain(const struct nvml_api *api, const char *call, int code,
                            struct error *err)
{
    const char *text = api->error_string(code);
    return UNSUPPORTED(err, "%s says %d (%s)%s", call, code, text ? text : "?",
                       code == NVML_ERROR_NO_PERMISSION
                           ? ": this user may not use the GPU; see /dev/nvidia*"
                           : "");
}

/* By its place on the bus, where CUDA reports it; else the order is believed to be the same. */
static enum status find_device(const struct nvml_api *api, int index, nvml_device *device,
                               struct error *err)
{
    char bus[BUS_SIZE] = "";
    int ordinal = 0;
    if (api->has_cuda && api->cuda_init(0) == 0 && api->cuda_device(&ordinal, index) == 0 &&
        api->cuda_bus(bus, sizeof(bus), ordinal) == 0) {
        int code = api->by_pci(bus, device);
        return code == NVML_SUCCESS ? STATUS_OK
                                    : complain(api, "nvmlDeviceGetHandleByPciBusId_v2", code, err);
    }
    unsigned count = 0;
    int code = api->count(&count);
    if (code != NVML_SUCCESS)
        return complain(api, "nvmlDeviceGetCount_v2", code, err);
    if (index < 0 || (unsigned)index >= count)
        return UNSUPPORTED(err, "NVML knows %u GPUs, not one of index %d", count, index);
    code = api->by_index((unsigned)index, device);
    return code == NVML_SUCCESS ? STATUS_OK
                                : complain(api, "nvmlDeviceGetHandleByIndex_v2", code, err);
}

/* shutdown it when this is OK. */
static enum status begin_library(const struct nvml_api *api, int index, nvml_device *device,
                                 struct error *err)
{
    int code = api->init();
    if (code != NVML_SUCCESS)
        return complain(api, "nvmlInit_v2", code, err);
    enum status status = find_device(api, index, device, err);
    if (status != STATUS_OK)
        api->shutdown();
    return status;
}

/* ---- readings ---- */

static double field_value(const struct nvml_field *f)
{
    if (f->code != NVML_SUCCESS)
        return NAN;
    switch (f->value_type) {
    case NVML_DOUBLE:
        return f->value.f64;
    case NVML_UNSIGNED:
        return f->value.u32;
    case NVML_UNSIGNED_LONG:
        return (double)f->value.u64;
    case NVML_UNSIGNED_LONG_LONG:
        return (double)f->value.ull;
    case NVML_SIGNED_LONG_LONG:
        return (double)f->value.s64;
    case NVML_SIGNED:
        return f->value.s32;
    case NVML_UNSIGNED_SHORT:
        return f->value.u16;
    default:
        return NAN;
    }
}

static struct reading read_counters(const struct nvml_watch *w)
{
    struct reading r = {.time_ns = clock_now_ns(), .energy_j = NAN};
    struct nvml_field fields[HELD_COUNT];
    unsigned long long millijoules = 0;
    memset(fields, 0, sizeof(fields));
    for (int k = 0; k < HELD_COUNT; k++)
        fields[k].id = held_fields[k];
    bool known = w->api.fields(w->device, HELD_COUNT, fields) == NVML_SUCCESS;
    for (int k = 0; k < HELD_COUNT; k++)
        r.held_s[k] = known ? field_value(&fields[k]) * 1e-9 : NAN;
    if (w->api.energy(w->device, &millijoules) == NVML_SUCCESS)
        r.energy_j = (double)millijoules * 1e-3;
    return r;
}

/* One look at what is now. The caller holds the lock. */
static void look(struct nvml_watch *w)
{
    struct looks *n = &w->looks;
    unsigned sm = 0, memory = 0, celsius = 0;
    unsigned long long bits = 0;
    struct nvml_field power;
    memset(&power, 0, sizeof(power));
    power.id = NVML_FIELD_POWER_INSTANT;
    if (w->api.clock(w->device, NVML_CLOCK_SM, &sm) == NVML_SUCCESS) {
        n->clock_sm_min = n->clocks ? fmin(n->clock_sm_min, sm) : sm;
        n->clock_sm += sm;
        n->clocks++;
    }
    if (w->api.clock(w->device, NVML_CLOCK_MEMORY, &memory) == NVML_SUCCESS) {
        n->clock_memory += memory;
        n->memory_clocks++;
    }
    if (w->api.temperature(w->device, NVML_TEMPERATURE_GPU, &celsius) == NVML_SUCCESS)
        n->temperature_max = fmax(n->temperature_max, celsius); /* fmax passes NAN over */
    if (w->api.fields(w->device, 1, &power) == NVML_SUCCESS)
        n->power_max = fmax(n->power_max, field_value(&power));
    if (w->api.reasons(w->device, &bits) == NVML_SUCCESS)
        n->reasons |= bits;
    n->count++;
}

static void *look_on(void *context)
{
    struct nvml_watch *w = context;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
            continue;
        if (!w->stop)
            look(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- a gauge ---- */

enum status nvml_gauge_open(const struct nvml_api *api, int device, struct nvml_gauge *gauge,
                            struct error *err)
{
    *gauge = (struct nvml_gauge){.api = *api};
    TRY(begin_library(api, device, &gauge->device, err));
    gauge->open = true;
    return STATUS_OK;
}

struct nvml_now nvml_gauge_read(const struct nvml_gauge *gauge)
{
    struct nvml_now now = {.clock_hz = NAN, .heat_s = NAN};
    struct nvml_field heat;
    unsigned megahertz = 0;
    unsigned long long bits = 0;
    memset(&heat, 0, sizeof(heat));
    heat.id = NVML_FIELD_HELD_BY_HEAT;
    if (gauge->api.clock(gauge->device, NVML_CLOCK_SM, &megahertz) == NVML_SUCCESS)
        now.clock_hz = megahertz * 1e6;
    if (gauge->api.fields(gauge->device, 1, &heat) == NVML_SUCCESS)
        now.heat_s = field_value(&heat) * 1e-9;
    if (gauge->api.reasons(gauge->device, &bits) == NVML_SUCCESS)
        now.slow = (unsigned)(bits & NVML_SLOW);
    return now;
}

void nvml_name_reasons(unsigned long long bits, char *text, size_t size)
{
    static const char *const names[] = {
        "idle",       "clocks set",      "power cap",       "slowdown",
        "sync boost", "heat (software)", "heat (hardware)", "power brake",
        "display"};
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (bits >> k & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[k]);
}

void nvml_gauge_close(struct nvml_gauge *gauge)
{
    if (gauge->open)
        gauge->api.shutdown();
    gauge->open = false;
}

/* ---- a watch ---- */

static struct nvml_watch *make_watch(const struct nvml_api *api)
{
    pthread_condattr_t attributes;
    struct nvml_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->api = *api;
    w->looks = (struct looks){.power_max = NAN, .temperature_max = NAN};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return w;
}

static void drop_watch(struct nvml_watch *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

enum status nvml_watch_open(const struct nvml_api *api, int device, struct nvml_watch **out,
                            struct error *err)
{
    struct nvml_watch *w = make_watch(api);
    if (!w)
        return FAIL_NO_MEMORY(err);
    enum status status = begin_library(api, device, &w->device, err);
    if (status != STATUS_OK) {
        drop_watch(w);
        return status;
    }
    *out = w;
    return STATUS_OK;
}

static void stop_looking(struct nvml_watch *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->running = false;
}

enum status nvml_watch_begin(struct nvml_watch *w, struct error *err)
{
    w->stop = false;
    w->begin = read_counters(w);
    if (pthread_create(&w->thread, NULL, look_on, w) != 0)
        return FAIL(err, STATUS_FAILED, "no thread can be started that looks at the GPU's clocks");
    w->running = true;
    return STATUS_OK;
}

enum status nvml_watch_end(struct nvml_watch *w, struct error *err)
{
    (void)err;
    pthread_mutex_lock(&w->lock);
    look(w); /* the last, while the clocks are still those of the work */
    pthread_mutex_unlock(&w->lock);
    struct reading now = read_counters(w);
    stop_looking(w);
    w->seen.seconds += (double)(now.time_ns - w->begin.time_ns) * 1e-9;
    w->seen.energy_j += now.energy_j - w->begin.energy_j;
    for (int k = 0; k < HELD_COUNT; k++)
        w->seen.held_s[k] += now.held_s[k] - w->begin.held_s[k];
    return STATUS_OK;
}

struct nvml_seen nvml_watch_seen(const struct nvml_watch *w)
{
    struct nvml_seen seen = w->seen;
    const struct looks *n = &w->looks;
    seen.power_max_w = n->power_max * 1e-3;
    seen.clock_sm_hz = n->clocks ? n->clock_sm / (double)n->clocks * 1e6 : NAN;
    seen.clock_sm_min_hz = n->clocks ? n->clock_sm_min * 1e6 : NAN;
    seen.clock_memory_hz =
        n->memory_clocks ? n->clock_memory / (double)n->memory_clocks * 1e6 : NAN;
    seen.temperature_max_c = n->temperature_max;
    seen.reasons = n->reasons;
    seen.looks = n->count;
    return seen;
}

void nvml_watch_close(struct nvml_watch *w)
{
    stop_looking(w);
    w->api.shutdown();
    drop_watch(w);
}
