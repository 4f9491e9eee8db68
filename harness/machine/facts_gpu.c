/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA GPUs through NVML, which comes with the driver and is opened at run time: no header, no
 * link. The prototypes and numbers below are those of NVML's stable interface (nvml.h, API
 * version 12); functions that an older driver lacks are left out one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/library.h"
#include "harness/machine/facts.h"

typedef void *nvml_device;
typedef int nvml_plain(void);
typedef int nvml_text(char *text, unsigned size);
typedef int nvml_count(unsigned *count);
typedef int nvml_open(unsigned index, nvml_device *device);
typedef int nvml_device_text(nvml_device device, char *text, unsigned size);
typedef int nvml_device_number(nvml_device device, unsigned *value);
typedef int nvml_device_clock(nvml_device device, int kind, unsigned *value);
typedef int nvml_device_pair(nvml_device device, unsigned *now, unsigned *pending);
typedef int nvml_device_wide(nvml_device device, unsigned long long *value);

enum { NVML_OK = 0, NVML_NO_PERMISSION = 4, CLOCK_SM = 1, CLOCK_MEMORY = 2, GPUS_MAX = 64 };

union nvml_call {
    void *address;
    nvml_plain *plain;
    nvml_text *text;
    nvml_count *count;
    nvml_open *open;
    nvml_device_text *device_text;
    nvml_device_number *device_number;
    nvml_device_clock *device_clock;
    nvml_device_pair *device_pair;
    nvml_device_wide *device_wide;
};

enum gpu_shape { GPU_TEXT, GPU_NUMBER, GPU_CLOCK_SM, GPU_CLOCK_MEMORY, GPU_PAIR, GPU_WIDE };

static const struct gpu_source {
    const char *key, *call, *unit;
    enum gpu_shape shape;
    enum fact_class class;
} sources[] = {
    {"name", "nvmlDeviceGetName", "", GPU_TEXT, FACT_IDENTITY},
    {"uuid", "nvmlDeviceGetUUID", "", GPU_TEXT, FACT_VOLATILE},
    {"serial", "nvmlDeviceGetSerial", "", GPU_TEXT, FACT_VOLATILE},
    {"vbios", "nvmlDeviceGetVbiosVersion", "", GPU_TEXT, FACT_IDENTITY},
    {"pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", "", GPU_NUMBER, FACT_VOLATILE},
    {"pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", "", GPU_NUMBER, FACT_IDENTITY},
    {"pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", "", GPU_NUMBER, FACT_VOLATILE},
    {"pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", "", GPU_NUMBER, FACT_IDENTITY},
    {"persistence", "nvmlDeviceGetPersistenceMode", "", GPU_NUMBER, FACT_TUNING},
    {"compute_mode", "nvmlDeviceGetComputeMode", "", GPU_NUMBER, FACT_TUNING},
    {"ecc", "nvmlDeviceGetEccMode", "", GPU_PAIR, FACT_TUNING},
    {"mig", "nvmlDeviceGetMigMode", "", GPU_PAIR, FACT_TUNING},
    {"power_limit", "nvmlDeviceGetEnforcedPowerLimit", "mW", GPU_NUMBER, FACT_TUNING},
    {"power", "nvmlDeviceGetPowerUsage", "mW", GPU_NUMBER, FACT_VOLATILE},
    {"clock_sm_max", "nvmlDeviceGetMaxClockInfo", "MHz", GPU_CLOCK_SM, FACT_IDENTITY},
    {"clock_memory_max", "nvmlDeviceGetMaxClockInfo", "MHz", GPU_CLOCK_MEMORY, FACT_IDENTITY},
    {"clock_sm_application", "nvmlDeviceGetApplicationsClock", "MHz", GPU_CLOCK_SM, FACT_TUNING},
    {"clock_memory_application", "nvmlDeviceGetApplicationsClock", "MHz", GPU_CLOCK_MEMORY,
     FACT_TUNING},
    {"clock_sm", "nvmlDeviceGetClockInfo", "MHz", GPU_CLOCK_SM, FACT_VOLATILE},
    {"clock_memory", "nvmlDeviceGetClockInfo", "MHz", GPU_CLOCK_MEMORY, FACT_VOLATILE},
    {"throttle_reasons", "nvmlDeviceGetCurrentClocksEventReasons", "", GPU_WIDE, FACT_VOLATILE},
};

static union nvml_call find(void *library, const char *name)
{
    return (union nvml_call){.address = library_symbol(library, name)};
}

/* The reasons of a clock had another name before driver 535. */
static union nvml_call find_source(void *library, const char **name)
{
    static const char older[] = "nvmlDeviceGetCurrentClocksThrottleReasons";
    union nvml_call call = find(library, *name);
    if (call.address || strcmp(*name, "nvmlDeviceGetCurrentClocksEventReasons") != 0)
        return call;
    *name = older;
    return find(library, older);
}

/* Asks for one fact; an NVML status. */
static int ask(union nvml_call call, enum gpu_shape shape, nvml_device device, char value[128])
{
    unsigned number = 0, pending = 0;
    unsigned long long wide = 0;
    int code = NVML_OK;
    switch (shape) {
    case GPU_TEXT:
        return call.device_text(device, value, 96);
    case GPU_CLOCK_SM:
        code = call.device_clock(device, CLOCK_SM, &number);
        break;
    case GPU_CLOCK_MEMORY:
        code = call.device_clock(device, CLOCK_MEMORY, &number);
        break;
    case GPU_PAIR:
        code = call.device_pair(device, &number, &pending);
        break;
    case GPU_WIDE:
        code = call.device_wide(device, &wide);
        snprintf(value, 128, "0x%llx", wide);
        return code;
    case GPU_NUMBER:
        code = call.device_number(device, &number);
        break;
    }
    snprintf(value, 128, "%u", number);
    return code;
}

static void read_device(struct facts *facts, void *library, unsigned index, nvml_device device)
{
    for (int k = 0; k < ARRAY_COUNT(sources); k++) {
        char key[96], value[128] = "";
        const char *name = sources[k].call;
        union nvml_call call = find_source(library, &name);
        int code = call.address ? ask(call, sources[k].shape, device, value) : -1;
        snprintf(key, sizeof(key), "%u_%s", index, sources[k].key);
        facts_add(facts, (struct fact){"gpu", key, value, sources[k].unit, name, sources[k].class,
                                       code == NVML_OK              ? FACT_OK
                                       : code == NVML_NO_PERMISSION ? FACT_DENIED
                                                                    : FACT_ABSENT});
    }
}

static void read_all(struct facts *facts, void *library)
{
    char version[96] = "";
    unsigned count = 0;
    union nvml_call driver = find(library, "nvmlSystemGetDriverVersion");
    union nvml_call number = find(library, "nvmlDeviceGetCount_v2");
    union nvml_call open = find(library, "nvmlDeviceGetHandleByIndex_v2");
    if (driver.address && driver.text(version, sizeof(version)) == NVML_OK)
        facts_text(facts,
                   (struct fact){.category = "gpu",
                                 .key = "driver",
                                 .class = FACT_IDENTITY,
                                 .source = "nvmlSystemGetDriverVersion"},
                   "%s", version);
    if (!number.address || !open.address || number.count(&count) != NVML_OK)
        return;
    facts_number(facts,
                 (struct fact){.category = "gpu",
                               .key = "count",
                               .class = FACT_IDENTITY,
                               .source = "nvmlDeviceGetCount_v2"},
                 count);
    for (unsigned k = 0; k < count && k < GPUS_MAX; k++) {
        nvml_device device;
        if (open.open(k, &device) == NVML_OK)
            read_device(facts, library, k, device);
    }
}

void facts_gpu(struct facts *facts)
{
    const char *named = getenv("RIDGE_NVML");
    const char *name = named && named[0] ? named : "libnvidia-ml.so.1";
    void *library;
    union nvml_call init = {NULL}, shutdown = {NULL};
    if (library_open_one(name, &library, NULL) == STATUS_OK) {
        init = find(library, "nvmlInit_v2");
        shutdown = find(library, "nvmlShutdown");
    }
    if (init.address && init.plain() == NVML_OK) {
        read_all(facts, library);
        if (shutdown.address)
            shutdown.plain();
    } else {
        facts_add(facts, (struct fact){"gpu", "driver", "", "", name, FACT_IDENTITY, FACT_ABSENT});
    }
    if (library)
        library_close(library);
}
