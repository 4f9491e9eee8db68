/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy, power, clocks and reasons for slow clocks of an NVIDIA GPU, by NVML, which comes with the
 * driver: no header, no link. The prototypes and numbers are those of its stable interface (API
 * version 12 and 13). All calls go through a table of functions, which tests replace. Reads only.
 *
 * A watch takes what the counters have counted since it began, and reads clocks and power at
 * intervals on a thread of its own. The counters of lost time are cumulative, so that short events
 * are not missed.
 */
#ifndef PROFILERS_LIB_NVML_H
#define PROFILERS_LIB_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef void *nvml_device;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEMPERATURE_GPU = 0
};

/* Reasons for slow clocks that make times worthless: clocks are halved, or heat holds them down. A
 * power limit is none of them. */
enum {
    NVML_SLOW_HARDWARE = 0x8, /* also seen for a moment when clocks change */
    NVML_SLOW_HEAT_SOFTWARE = 0x20,
    NVML_SLOW_HEAT_HARDWARE = 0x40,
    NVML_SLOW_POWER_BRAKE = 0x80,
    NVML_SLOW = 0xe8 /* all of them */
};

/* nvmlFieldValue_t: one of many numbers, asked for by their ids. */
struct nvml_field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int value_type; /* enum nvml_value_type */
    int code;       /* NVML_SUCCESS: it is there */
    union {
        double f64;
        unsigned u32;
        unsigned long u64;
        unsigned long long ull;
        signed long long s64;
        signed int s32;
        unsigned short u16;
    } value;
};

enum nvml_value_type {
    NVML_DOUBLE,
    NVML_UNSIGNED,
    NVML_UNSIGNED_LONG,
    NVML_UNSIGNED_LONG_LONG,
    NVML_SIGNED_LONG_LONG,
    NVML_SIGNED,
    NVML_UNSIGNED_SHORT
};

/* Field ids. The counters are nanoseconds in which clocks were held down, for a reason each, and
 * move ten times a second. Newer ids split heat further, but are not the same in all drivers. */
enum {
    NVML_FIELD_HELD_BY_POWER = 74,
    NVML_FIELD_HELD_BY_HEAT = 75,
    NVML_FIELD_HELD_BY_BOOST = 76,
    NVML_FIELD_HELD_BY_BOARD = 77,
    NVML_FIELD_POWER_INSTANT = 186 /* mW; what nvmlDeviceGetPowerUsage gives is a 1 s average */
};

#define NVML_CALLS(X)                                                                              \
    X(init, "nvmlInit_v2", int, (void))                                                            \
    X(shutdown, "nvmlShutdown", int, (void))                                                       \
    X(error_string, "nvmlErrorString", const char *, (int code))                                   \
    X(count, "nvmlDeviceGetCount_v2", int, (unsigned *count))                                      \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", int, (unsigned index, nvml_device *device))       \
    X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", int, (const char *bus, nvml_device *device))     \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", int,                                          \
      (nvml_device device, unsigned long long *millijoules))                                       \
    X(clock, "nvmlDeviceGetClockInfo", int, (nvml_device device, int kind, unsigned *megahertz))   \
    X(temperature, "nvmlDeviceGetTemperature", int,                                                \
      (nvml_device device, int sensor, unsigned *celsius))                                         \
    X(fields, "nvmlDeviceGetFieldValues", int,                                                     \
      (nvml_device device, int count, struct nvml_field *fields))

/* Of libcuda: which card the index of a CUDA device is, whose order is CUDA's own. */
#define NVML_DRIVER_CALLS(X)                                                                       \
    X(cuda_init, "cuInit", int, (unsigned flags))                                                  \
    X(cuda_device, "cuDeviceGet", int, (int *device, int index))                                   \
    X(cuda_bus, "cuDeviceGetPCIBusId", int, (char *bus, int size, int device))

#define NVML_FIELD(name, symbol, type, arguments) type(*name) arguments;
struct nvml_api {
    NVML_CALLS(NVML_FIELD)
    int (*reasons)(nvml_device device, unsigned long long *bits); /* of slow clocks */
    bool has_cuda;                                                /* the next three are there */
    NVML_DRIVER_CALLS(NVML_FIELD)
};

/* Fills the table from libraries (NULL: libnvidia-ml.so.1, libcuda.so.1). Fails, saying what to do,
 * when the first or a function of it is missing; a function may have its newer name. */
enum status nvml_load(const char *file, const char *driver, struct nvml_api *api,
                      struct error *err);

enum nvml_held { HELD_POWER, HELD_HEAT, HELD_BOOST, HELD_BOARD, HELD_COUNT };

/* What a watch saw. Sums over all its begins and ends; NAN: this GPU does not report it. */
struct nvml_seen {
    double seconds;
    double energy_j;
    double held_s[HELD_COUNT];
    double power_max_w;
    double clock_sm_hz, clock_sm_min_hz, clock_memory_hz; /* means and the least of all looks */
    double temperature_max_c;
    unsigned long long reasons; /* all bits that were seen */
    int64_t looks;
};

/* One look at a GPU's clock, without a thread: between samples of a run. */
struct nvml_gauge {
    struct nvml_api api;
    nvml_device device;
    bool open;
};

struct nvml_now {
    double clock_hz; /* of the multiprocessors; NAN: not reported, as is */
    double heat_s;   /* for how long heat has held clocks down; only grows */
    unsigned slow;   /* bits of NVML_SLOW; 0 also where it is not reported */
};

/* Begins NVML; device: an index of CUDA's. A zeroed gauge can be closed, too. */
enum status nvml_gauge_open(const struct nvml_api *api, int device, struct nvml_gauge *gauge,
                            struct error *err);
struct nvml_now nvml_gauge_read(const struct nvml_gauge *gauge);
void nvml_gauge_close(struct nvml_gauge *gauge);

/* "power cap, heat (software)" */
void nvml_name_reasons(unsigned long long bits, char *text, size_t size);

struct nvml_watch;

/* Begins NVML; device: an index of CUDA's. */
enum status nvml_watch_open(const struct nvml_api *api, int device, struct nvml_watch **out,
                            struct error *err);
enum status nvml_watch_begin(struct nvml_watch *watch, struct error *err);
enum status nvml_watch_end(struct nvml_watch *watch, struct error *err);
struct nvml_seen nvml_watch_seen(const struct nvml_watch *watch);
void nvml_watch_close(struct nvml_watch *watch);

#endif
