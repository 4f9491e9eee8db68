/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cupti_fake/fake.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/cupti/api.h"

#define PUBLIC __attribute__((visibility("default")))

enum { RANGES_MAX = 512, PASSES_MAX = 64, BUFFER_MIN = 4096, KINDS_MAX = 64 };

struct CUpti_Profiler_Host_Object {
    int metrics;
    bool samples;
};

struct CUpti_RangeProfiler_Object {
    bool configured, started, pushed;
    int pass, pass_ranges, ranges, most;
    char names[RANGES_MAX][16];
    double pushes[RANGES_MAX];
};

struct CUpti_PmSampling_Object {
    bool configured, started, cleared;
    int left; /* samples that were not decoded */
};

struct image {
    int metrics, passes;
};

struct named_uses {
    const char *name;
    int uses;
};

static struct fake_script script;
static struct named_uses uses[FAKE_NAMES_MAX];
static int objects;
static bool failed; /* as the script wanted: what follows may be incomplete */
static char rule[160];
static bool initialized, context_current, context_retained, cuda_initialized;
static struct CUpti_RangeProfiler_Object *profiler; /* one at a time */
static struct CUpti_PmSampling_Object *sampler;
static int image_samples;
static bool enabled[KINDS_MAX];
static CUpti_BuffersCallbackRequestFunc on_request;
static CUpti_BuffersCallbackCompleteFunc on_complete;
static CUpti_TimestampCallbackFunc timestamp;

static void broke(const char *what)
{
    if (!rule[0])
        snprintf(rule, sizeof(rule), "%s", what);
}

static int enter(const char *call)
{
    for (int k = 0; k < FAKE_NAMES_MAX; k++) {
        if (!uses[k].name)
            uses[k].name = call;
        if (strcmp(uses[k].name, call) != 0)
            continue;
        uses[k].uses++;
        bool fails = script.call && strcmp(script.call, call) == 0 && uses[k].uses == script.nth;
        failed |= fails;
        return fails ? script.code : 0;
    }
    return 0;
}

#define ENTER(name)                                                                                \
    do {                                                                                           \
        int code_ = enter(#name);                                                                  \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

/* ---- the driver ---- */

PUBLIC CUresult cuInit(unsigned flags)
{
    (void)flags;
    ENTER(cuInit);
    cuda_initialized = true;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuGetErrorName(CUresult code, const char **text)
{
    ENTER(cuGetErrorName);
    *text = code == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    if (!cuda_initialized)
        broke("cuDeviceGetCount before cuInit");
    *count = script.devices;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGet(CUdevice *device, int index)
{
    ENTER(cuDeviceGet);
    if (index >= script.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = index;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    ENTER(cuDevicePrimaryCtxRetain);
    *context = (CUcontext)(void *)&script;
    context_retained = true;
    objects++;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    objects--;
    context_retained = context_current = false;
    ENTER(cuDevicePrimaryCtxRelease_v2);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent);
    context_current = context != NULL;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    if (!context_current)
        broke("cuCtxSynchronize without a context");
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetPCIBusId(char *bus, int size, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId);
    snprintf(bus, (size_t)size, "0000:0%d:00.0", device);
    return CUDA_SUCCESS;
}

/* ---- the host side ---- */

PUBLIC CUptiResult cuptiGetVersion(uint32_t *version)
{
    ENTER(cuptiGetVersion);
    *version = (uint32_t)script.version;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiGetResultString(CUptiResult code, const char **text)
{
    ENTER(cuptiGetResultString);
    *text = code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                        : "CUPTI_ERROR_FAKE";
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params *p)
{
    static const char *const chips[] = {"GH100"};
    ENTER(cuptiProfilerHostGetSupportedChips);
    p->numChips = 1;
    p->ppChipNames = chips;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    ENTER(cuptiProfilerHostInitialize);
    p->pHostObject = calloc(1, sizeof(*p->pHostObject));
    p->pHostObject->samples = p->profilerType == CUPTI_PROFILER_TYPE_PM_SAMPLING;
    objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    free(p->pHostObject);
    objects--;
    ENTER(cuptiProfilerHostDeinitialize);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
    ENTER(cuptiProfilerHostGetMetricProperties);
    if (strstr(p->pMetricName, "no_such"))
        return CUPTI_ERROR_INVALID_METRIC_NAME;
    p->pDescription = "made up";
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    ENTER(cuptiProfilerHostConfigAddMetrics);
    p->pHostObject->metrics += (int)p->numMetrics;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    ENTER(cuptiProfilerHostGetConfigImageSize);
    p->configImageSize = sizeof(struct image);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    ENTER(cuptiProfilerHostGetConfigImage);
    struct image image = {p->pHostObject->metrics, p->pHostObject->samples ? 1 : script.passes};
    memcpy(p->pConfigImage, &image, sizeof(image));
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    struct image image;
    ENTER(cuptiProfilerHostGetNumOfPasses);
    memcpy(&image, p->pConfigImage, sizeof(image));
    p->numOfPasses = (size_t)image.passes;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    ENTER(cuptiProfilerHostEvaluateToGpuValues);
    for (size_t m = 0; m < p->numMetrics; m++) {
        double pushes = profiler ? profiler->pushes[p->rangeIndex] : 1;
        p->pMetricValues[m] =
            (int)m == script.zero_metric ? 0 : pushes * FAKE_COUNT(m, profiler ? p->rangeIndex : 0);
    }
    return CUPTI_SUCCESS;
}

/* ---- the device ---- */

PUBLIC CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    (void)p;
    ENTER(cuptiProfilerInitialize);
    initialized = true;
    objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
    (void)p;
    objects--;
    initialized = false;
    ENTER(cuptiProfilerDeInitialize);
    return CUPTI_SUCCESS;
}

/* The real ones crash here. */
static void needs_profiler(const char *call)
{
    if (!initialized || !context_current)
        broke(call);
}

PUBLIC CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *p)
{
    ENTER(cuptiProfilerDeviceSupported);
    needs_profiler("cuptiProfilerDeviceSupported too early");
    p->architecture = p->sli = p->vGpu = p->confidentialCompute = p->cmp = p->wsl = p->isSupported =
        CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    if (!script.unsupported)
        return CUPTI_SUCCESS;
    p->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    if (strcmp(script.unsupported, "architecture") == 0)
        p->architecture = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    if (strcmp(script.unsupported, "vgpu") == 0)
        p->vGpu = CUPTI_PROFILER_CONFIGURATION_DISABLED;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    ENTER(cuptiProfilerGetCounterAvailability);
    needs_profiler("cuptiProfilerGetCounterAvailability too early");
    p->counterAvailabilityImageSize = 16;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    ENTER(cuptiDeviceGetChipName);
    needs_profiler("cuptiDeviceGetChipName too early");
    p->pChipName = script.chip;
    return CUPTI_SUCCESS;
}

/* ---- ranges ---- */

PUBLIC CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    ENTER(cuptiRangeProfilerEnable);
    needs_profiler("cuptiRangeProfilerEnable too early");
    if (profiler)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pRangeProfilerObject = profiler = calloc(1, sizeof(*profiler));
    objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    if (p->pRangeProfilerObject->started)
        broke("cuptiRangeProfilerDisable between start and stop");
    free(p->pRangeProfilerObject);
    profiler = NULL;
    objects--;
    ENTER(cuptiRangeProfilerDisable);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    ENTER(cuptiRangeProfilerGetCounterDataSize);
    if (p->maxNumRangeTreeNodes < p->maxNumOfRanges || p->maxNumOfRanges > RANGES_MAX)
        return CUPTI_ERROR_INVALID_PARAMETER;
    p->counterDataSize = 64;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    ENTER(cuptiRangeProfilerCounterDataImageInitialize);
    memset(p->pCounterData, 1, p->counterDataSize);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    ENTER(cuptiRangeProfilerSetConfig);
    if (p->range != CUPTI_UserRange || p->replayMode != CUPTI_UserReplay ||
        p->numNestingLevels != 1 || p->minNestingLevel != 1 || p->targetNestingLevel != 1 ||
        p->passIndex != 0 || p->pCounterDataImage[0] != 1)
        return CUPTI_ERROR_INVALID_PARAMETER;
    profiler->configured = true;
    profiler->most = (int)p->maxRangesPerPass;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    ENTER(cuptiRangeProfilerStart);
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (!r->configured || r->started || r->pass >= script.passes)
        return CUPTI_ERROR_INVALID_OPERATION;
    r->started = true;
    r->pass_ranges = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (r->pushed)
        broke("cuptiRangeProfilerStop within a range");
    r->started = false;
    ENTER(cuptiRangeProfilerStop);
    if (!failed && r->pass > 0 && r->pass_ranges != r->ranges)
        broke("passes with different ranges");
    r->ranges = r->pass_ranges;
    p->isAllPassSubmitted = ++r->pass == script.passes;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p)
{
    ENTER(cuptiRangeProfilerPushRange);
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (!r->started || r->pushed || r->pass_ranges >= r->most)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (r->pass > 0 && strcmp(r->names[r->pass_ranges], p->pRangeName) != 0)
        broke("passes with different names");
    snprintf(r->names[r->pass_ranges], sizeof(r->names[0]), "%s", p->pRangeName);
    r->pushes[r->pass_ranges++] = 1;
    r->pushed = true;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *p)
{
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    bool pushed = r->pushed;
    r->pushed = false;
    ENTER(cuptiRangeProfilerPopRange);
    return pushed ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

PUBLIC CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    ENTER(cuptiRangeProfilerDecodeData);
    if (p->pRangeProfilerObject->pass != script.passes)
        broke("cuptiRangeProfilerDecodeData before all passes");
    p->numOfRangeDropped = (size_t)script.dropped_ranges;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    ENTER(cuptiRangeProfilerGetCounterDataInfo);
    p->numTotalRanges = (size_t)profiler->ranges;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *p)
{
    ENTER(cuptiRangeProfilerCounterDataGetRangeInfo);
    p->rangeName = profiler->names[p->rangeIndex];
    return CUPTI_SUCCESS;
}

/* ---- samples ---- */

PUBLIC CUptiResult
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterAvailability);
    needs_profiler("cuptiPmSamplingGetCounterAvailability too early");
    p->counterAvailabilityImageSize = 16;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *p)
{
    ENTER(cuptiPmSamplingEnable);
    needs_profiler("cuptiPmSamplingEnable too early");
    if (sampler)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pPmSamplingObject = sampler = calloc(1, sizeof(*sampler));
    objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *p)
{
    if (p->pPmSamplingObject->started)
        broke("cuptiPmSamplingDisable between start and stop");
    free(p->pPmSamplingObject);
    sampler = NULL;
    objects--;
    ENTER(cuptiPmSamplingDisable);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *p)
{
    ENTER(cuptiPmSamplingSetConfig);
    bool timer = p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    if (timer && (strncmp(script.chip, "TU", 2) == 0 || strcmp(script.chip, "GA100") == 0))
        return CUPTI_ERROR_NOT_SUPPORTED;
    p->pPmSamplingObject->configured = true;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterDataSize);
    p->counterDataSize = 64;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
    ENTER(cuptiPmSamplingCounterDataImageInitialize);
    memset(p->pCounterData, 1, p->counterDataSize);
    p->pPmSamplingObject->cleared = true;
    image_samples = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *p)
{
    ENTER(cuptiPmSamplingStart);
    if (!p->pPmSamplingObject->configured || p->pPmSamplingObject->started)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pPmSamplingObject->started = true;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *p)
{
    p->pPmSamplingObject->started = false;
    ENTER(cuptiPmSamplingStop);
    p->pPmSamplingObject->left = FAKE_SAMPLES;
    return CUPTI_SUCCESS;
}

/* The image takes ten samples, so there is more than one. */
PUBLIC CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *p)
{
    ENTER(cuptiPmSamplingDecodeData);
    struct CUpti_PmSampling_Object *s = p->pPmSamplingObject;
    if (!s->cleared)
        broke("cuptiPmSamplingDecodeData into a used image");
    s->cleared = false;
    image_samples = s->left < 10 ? s->left : 10;
    s->left -= image_samples;
    p->overflow = (uint8_t)script.overflow;
    p->decodeStopReason = s->left ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                  : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterDataInfo);
    p->numTotalSamples = 10;
    p->numPopulatedSamples = p->numCompletedSamples = (size_t)image_samples;
    return CUPTI_SUCCESS;
}

/* ---- activity ---- */

PUBLIC CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                  CUpti_BuffersCallbackCompleteFunc complete)
{
    ENTER(cuptiActivityRegisterCallbacks);
    on_request = request;
    on_complete = complete;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    ENTER(cuptiActivityRegisterTimestampCallback);
    timestamp = function;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityEnable);
    if (!on_request || !timestamp)
        broke("cuptiActivityEnable before the callbacks");
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
        broke("a kind that makes kernels run one after the other");
    objects += !enabled[kind];
    enabled[kind] = true;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    objects -= enabled[kind];
    enabled[kind] = false;
    ENTER(cuptiActivityDisable);
    return CUPTI_SUCCESS;
}

static size_t put(uint8_t *to, size_t used, const void *record, size_t size)
{
    memcpy(to + used, record, size);
    return used + size;
}

/* The nodes of one graph: 3 kernels of 10 us, the second overlapping the first by 5 us, then a gap
 * of 20 us; a copy of 4 us in the gap that leaves 8 us on either side. */
static size_t put_nodes(uint8_t *to, size_t used, uint64_t base)
{
    static const uint64_t starts[] = {0, 5000, 35000};
    for (uint32_t k = 0; k < 3; k++) {
        CUpti_ActivityKernel10 kernel;
        memset(&kernel, 0, sizeof(kernel));
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.start = base + starts[k];
        kernel.end = kernel.start + 10000;
        kernel.streamId = 7 + k;
        kernel.correlationId = k + 1;
        kernel.gridX = 132;
        kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
        kernel.blockX = 256;
        kernel.registersPerThread = 64;
        kernel.staticSharedMemory = 1024;
        kernel.dynamicSharedMemory = 2048;
        kernel.graphNodeId = k;
        kernel.name = k == 2 ? NULL : "gemm_\"quoted\"_kernel";
        used = put(to, used, &kernel, sizeof(kernel));
    }
    CUpti_ActivityMemcpy6 copy;
    memset(&copy, 0, sizeof(copy));
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.start = base + 23000;
    copy.end = base + 27000;
    copy.bytes = 4096;
    return put(to, used, &copy, sizeof(copy));
}

static size_t put_others(uint8_t *to, size_t used, uint64_t base)
{
    CUpti_ActivityMemset4 set;
    CUpti_ActivityOverhead3 overhead;
    memset(&set, 0, sizeof(set));
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.start = base + 45000;
    set.end = base + 46000;
    set.bytes = 64;
    memset(&overhead, 0, sizeof(overhead));
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead.start = base;
    overhead.end = base + 2000;
    return put(to, put(to, used, &set, sizeof(set)), &overhead, sizeof(overhead));
}

static size_t put_graph(uint8_t *to, size_t used, uint64_t base)
{
    CUpti_ActivityGraphTrace2 graph;
    memset(&graph, 0, sizeof(graph));
    graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    graph.start = base;
    graph.end = base + 45000;
    return put(to, used, &graph, sizeof(graph));
}

PUBLIC CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used = 0;
    ENTER(cuptiActivityFlushAll);
    if (flag || !enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        return CUPTI_SUCCESS;
    on_request(&buffer, &size, &most);
    if (!buffer || size < BUFFER_MIN || (uintptr_t)buffer % 8)
        broke("a buffer that is too small or not aligned");
    uint64_t base = timestamp();
    used = enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] ? put_graph(buffer, used, base)
                                                    : put_nodes(buffer, used, base);
    used = put_others(buffer, used, base);
    on_complete(NULL, 0, buffer, size, used);
    return CUPTI_SUCCESS;
}

static size_t size_of(const void *record)
{
    CUpti_ActivityKind kind;
    memcpy(&kind, record, sizeof(kind));
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
    default:
        return 0;
    }
}

PUBLIC CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, CUpti_Activity **record)
{
    ENTER(cuptiActivityGetNextRecord);
    uint8_t *next = *record ? (uint8_t *)*record + size_of(*record) : buffer;
    if (next >= buffer + size)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return size_of(next) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

PUBLIC CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                     size_t *dropped)
{
    (void)context;
    (void)stream;
    ENTER(cuptiActivityGetNumDroppedRecords);
    *dropped = (size_t)script.dropped_records;
    return CUPTI_SUCCESS;
}

/* ---- control ---- */

static void set(const struct fake_script *wanted)
{
    script = *wanted;
    memset(uses, 0, sizeof(uses));
    memset(enabled, 0, sizeof(enabled));
    rule[0] = '\0';
    objects = 0;
    failed = false;
    initialized = context_current = context_retained = cuda_initialized = false;
    profiler = NULL;
    sampler = NULL;
}

static int uses_of(const char *call)
{
    for (int k = 0; k < FAKE_NAMES_MAX && uses[k].name; k++)
        if (strcmp(uses[k].name, call) == 0)
            return uses[k].uses;
    return 0;
}

static int open_objects(void)
{
    return objects;
}

static const char *broken_rule(void)
{
    return rule;
}

#define NAME(name) #name,

static const char *const *all_names(void)
{
    static const char *const all[] = {CUPTI_CALLS(NAME) DRIVER_CALLS(NAME) NULL};
    return all;
}

const struct fake_control *fake_control(void)
{
    static const struct fake_control control = {set, uses_of, open_objects, broken_rule, all_names};
    return &control;
}
