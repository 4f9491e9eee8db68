/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that the plug-in calls in libcupti and in the driver, as one table of functions that
 * is filled when the library is opened (tests give another library), and what a failure says.
 *
 * The library's header of its host side includes a C++ header, <string>, of which it needs nothing:
 * the empty file include/string stands in for it.
 */
#ifndef PROFILERS_PLUGINS_CUPTI_API_H
#define PROFILERS_PLUGINS_CUPTI_API_H

#include <cuda.h>
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "profilers/lib/cupti_backend.h"

#define CUPTI_CALLS(X)                                                                             \
    X(cuptiGetVersion)                                                                             \
    X(cuptiGetResultString)                                                                        \
    X(cuptiProfilerHostGetSupportedChips)                                                          \
    X(cuptiProfilerHostInitialize)                                                                 \
    X(cuptiProfilerHostDeinitialize)                                                               \
    X(cuptiProfilerHostGetMetricProperties)                                                        \
    X(cuptiProfilerHostConfigAddMetrics)                                                           \
    X(cuptiProfilerHostGetConfigImageSize)                                                         \
    X(cuptiProfilerHostGetConfigImage)                                                             \
    X(cuptiProfilerHostGetNumOfPasses)                                                             \
    X(cuptiProfilerHostEvaluateToGpuValues)                                                        \
    X(cuptiProfilerInitialize)                                                                     \
    X(cuptiProfilerDeInitialize)                                                                   \
    X(cuptiProfilerDeviceSupported)                                                                \
    X(cuptiProfilerGetCounterAvailability)                                                         \
    X(cuptiDeviceGetChipName)                                                                      \
    X(cuptiRangeProfilerEnable)                                                                    \
    X(cuptiRangeProfilerDisable)                                                                   \
    X(cuptiRangeProfilerGetCounterDataSize)                                                        \
    X(cuptiRangeProfilerCounterDataImageInitialize)                                                \
    X(cuptiRangeProfilerSetConfig)                                                                 \
    X(cuptiRangeProfilerStart)                                                                     \
    X(cuptiRangeProfilerStop)                                                                      \
    X(cuptiRangeProfilerPushRange)                                                                 \
    X(cuptiRangeProfilerPopRange)                                                                  \
    X(cuptiRangeProfilerDecodeData)                                                                \
    X(cuptiRangeProfilerGetCounterDataInfo)                                                        \
    X(cuptiRangeProfilerCounterDataGetRangeInfo)                                                   \
    X(cuptiPmSamplingGetCounterAvailability)                                                       \
    X(cuptiPmSamplingEnable)                                                                       \
    X(cuptiPmSamplingDisable)                                                                      \
    X(cuptiPmSamplingSetConfig)                                                                    \
    X(cuptiPmSamplingGetCounterDataSize)                                                           \
    X(cuptiPmSamplingCounterDataImageInitialize)                                                   \
    X(cuptiPmSamplingStart)                                                                        \
    X(cuptiPmSamplingStop)                                                                         \
    X(cuptiPmSamplingDecodeData)                                                                   \
    X(cuptiPmSamplingGetCounterDataInfo)                                                           \
    X(cuptiActivityRegisterCallbacks)                                                              \
    X(cuptiActivityEnable)                                                                         \
    X(cuptiActivityDisable)                                                                        \
    X(cuptiActivityFlushAll)                                                                       \
    X(cuptiActivityGetNextRecord)                                                                  \
    X(cuptiActivityGetNumDroppedRecords)

#define DRIVER_CALLS(X)                                                                            \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease_v2)                                                                \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)

#define CALL_FIELD(name) __typeof__(name) *name;

struct cupti_api {
    CUPTI_CALLS(CALL_FIELD)
};

struct driver_api {
    DRIVER_CALLS(CALL_FIELD)
};

struct cupti {
    struct cupti_api api;
    struct driver_api driver;
    bool has_driver;
    uint32_t version;
    char driver_file[256], params_file[256], status_file[256];
    CUdevice device;
    CUcontext context; /* NULL: not attached */
    int index;
    bool counting; /* cuptiProfilerInitialize was successful */
    struct held {
        CUpti_RangeProfiler_Object *profiler; /* NULL: each struct cupti_ranges has its own */
        uint8_t *availability;                /* asked for before, as it cannot be after; owned */
        uint8_t *config, *data;               /* images that it may still read; owned */
    } held;
};

/* A parameter struct of the library, with its size filled in. */
#define PARAMS(type, name) type##_Params name = {.structSize = type##_Params_STRUCT_SIZE}

/* Calls and, if that fails, explains: `if (!CUPTI_OK(cupti, reason, cuptiX, &p)) return false;` */
#define CUPTI_OK(cupti, reason, call, ...)                                                         \
    cupti_ok((cupti), (reason), #call, (cupti)->api.call(__VA_ARGS__))
#define DRIVER_OK(cupti, reason, call, ...)                                                        \
    driver_ok((cupti), (reason), #call, (cupti)->driver.call(__VA_ARGS__))

bool cupti_ok(const struct cupti *cupti, char *reason, const char *call, CUptiResult code);
bool driver_ok(const struct cupti *cupti, char *reason, const char *call, CUresult code);
/* Always false. */
__attribute__((format(printf, 2, 3))) bool cupti_say(char *reason, const char *format, ...);

/* library.c */
struct cupti *cupti_open(const struct cupti_files *files, char *reason);
void cupti_close(struct cupti *cupti);
bool cupti_load_driver(struct cupti *cupti, char *reason);

/* device.c */
bool cupti_ready(struct cupti *cupti, enum cupti_use use, char *reason);
bool cupti_attach(struct cupti *cupti, int device, enum cupti_use use, char *chip, char *reason);
void cupti_detach(struct cupti *cupti);
bool cupti_synchronise(struct cupti *cupti, char *reason);

/* host.c */
/* What of the device can be counted in ranges, as an image; owned by the caller, also on failure.
 */
bool cupti_range_availability(struct cupti *cupti, uint8_t **image, char *reason);
struct cupti_config {
    struct cupti *cupti;
    CUpti_Profiler_Host_Object *host;
    enum cupti_use use;
    char chip[CUPTI_CHIP];
    char **names; /* owned */
    int count;
    uint8_t *image; /* owned */
    size_t size;
    int passes;
};

const char *const *cupti_chips(struct cupti *cupti, int *count, char *reason);
bool cupti_describe(struct cupti *cupti, const struct cupti_wanted *wanted, int index, char *text,
                    size_t size, char *reason);
struct cupti_config *cupti_config_open(struct cupti *cupti, const struct cupti_wanted *wanted,
                                       char *reason);
int cupti_config_passes(const struct cupti_config *config);
void cupti_config_close(struct cupti_config *config);
/* Values of all metrics of a config in one range or sample of a counter data image. */
bool cupti_evaluate(const struct cupti_config *config, const uint8_t *data, size_t size,
                    size_t index, double *values, char *reason);

/* ranges.c */
bool cupti_hold(struct cupti *cupti, char *reason);
void cupti_let_go(struct cupti *cupti);
struct cupti_ranges *cupti_ranges_open(struct cupti_config *config, int ranges_max, char *reason);
bool cupti_ranges_start(struct cupti_ranges *ranges, char *reason);
bool cupti_ranges_push(struct cupti_ranges *ranges, const char *name, char *reason);
bool cupti_ranges_pop(struct cupti_ranges *ranges, char *reason);
bool cupti_ranges_stop(struct cupti_ranges *ranges, bool *complete, char *reason);
bool cupti_ranges_decode(struct cupti_ranges *ranges, int *count, char *reason);
bool cupti_ranges_read(struct cupti_ranges *ranges, int index, char *name, size_t size,
                       double *values, char *reason);
void cupti_ranges_close(struct cupti_ranges *ranges);

/* sampler.c */
struct cupti_sampler *cupti_sampler_open(struct cupti_config *config, uint64_t interval_ns,
                                         char *reason);
bool cupti_sampler_start(struct cupti_sampler *sampler, char *reason);
bool cupti_sampler_stop(struct cupti_sampler *sampler, double *sums, int64_t *samples,
                        char *reason);
void cupti_sampler_close(struct cupti_sampler *sampler);

/* tracer.c */
struct cupti_tracer *cupti_tracer_open(struct cupti *cupti, char *reason);
bool cupti_tracer_start(struct cupti_tracer *tracer, bool graphs, char *reason);
bool cupti_tracer_drop(struct cupti_tracer *tracer, char *reason);
bool cupti_tracer_stop(struct cupti_tracer *tracer, cupti_sink *sink, void *context,
                       int64_t *dropped, char *reason);
void cupti_tracer_close(struct cupti_tracer *tracer);

#endif
