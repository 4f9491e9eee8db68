/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cupti_fake/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    int metrics, passes;
};

/* ---- the host side ---- */

PUBLIC CUptiResult cuptiGetVersion(uint32_t *version)
{
    ENTER(cuptiGetVersion);
    *version = (uint32_t)fake.script.version;
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
    fake.objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    free(p->pHostObject);
    fake.objects--;
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
    struct image image = {p->pHostObject->metrics,
                          p->pHostObject->samples ? 1 : fake.script.passes};
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

/* Operations are counted by patching kernels: with RIDGE_FAKE_LATE=0 those alone that were loaded
 * after the ranges' counters were enabled. */
static bool is_missed(const char *metric)
{
    const char *late = getenv("RIDGE_FAKE_LATE");
    return late && strcmp(late, "0") == 0 && strstr(metric, "sass") && fake.profiler &&
           !fake.profiler->first;
}

PUBLIC CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    ENTER(cuptiProfilerHostEvaluateToGpuValues);
    for (size_t m = 0; m < p->numMetrics; m++) {
        bool zero = (int)m == fake.script.zero_metric ||
                    (fake.script.zero_from && (int)m >= fake.script.zero_from);
        int seen = fake.profiler ? fake.profiler->seen[p->rangeIndex] : 0;
        if (!device_count(p->ppMetricNames[m], &p->pMetricValues[m]))
            p->pMetricValues[m] = zero ? 0 : FAKE_COUNT(m, seen);
        if (is_missed(p->ppMetricNames[m]))
            p->pMetricValues[m] = 0;
    }
    return CUPTI_SUCCESS;
}

/* ---- the device ---- */

PUBLIC CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    (void)p;
    ENTER(cuptiProfilerInitialize);
    fake.initialized = fake.was_attached = true;
    fake.objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
    (void)p;
    fake.objects--;
    fake.initialized = false;
    ENTER(cuptiProfilerDeInitialize);
    return CUPTI_SUCCESS;
}

/* The real ones crash here. */
static void needs_profiler(const char *call)
{
    if (!fake.initialized || !fake.context_current)
        broke(call);
}

PUBLIC CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *p)
{
    ENTER(cuptiProfilerDeviceSupported);
    needs_profiler("cuptiProfilerDeviceSupported too early");
    p->architecture = p->sli = p->vGpu = p->confidentialCompute = p->cmp = p->wsl = p->isSupported =
        CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    if (!fake.script.unsupported)
        return CUPTI_SUCCESS;
    if (strcmp(fake.script.unsupported, "limited") == 0) {
        enum { LIMITED_SUPPORT = CUPTI_PROFILER_CONFIGURATION_SUPPORTED + 1 };
        p->isSupported = p->sli = (CUpti_Profiler_Support_Level)LIMITED_SUPPORT;
        return CUPTI_SUCCESS;
    }
    p->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    if (strcmp(fake.script.unsupported, "architecture") == 0)
        p->architecture = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    if (strcmp(fake.script.unsupported, "vgpu") == 0)
        p->vGpu = CUPTI_PROFILER_CONFIGURATION_DISABLED;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    ENTER(cuptiProfilerGetCounterAvailability);
    needs_profiler("cuptiProfilerGetCounterAvailability too early");
    if (fake.profiler || fake.sampler)
        return CUPTI_ERROR_INVALID_OPERATION; /* its header: "may fail" */
    p->counterAvailabilityImageSize = 16;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    ENTER(cuptiDeviceGetChipName);
    needs_profiler("cuptiDeviceGetChipName too early");
    p->pChipName = fake.script.chip;
    return CUPTI_SUCCESS;
}

/* ---- ranges ---- */

PUBLIC CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    ENTER(cuptiRangeProfilerEnable);
    needs_profiler("cuptiRangeProfilerEnable too early");
    if (fake.profiler)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pRangeProfilerObject = fake.profiler = calloc(1, sizeof(*fake.profiler));
    fake.profiler->first = device_captures() == 0;
    fake.objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    if (p->pRangeProfilerObject->started)
        broke("cuptiRangeProfilerDisable between start and stop");
    keep_look(&p->pRangeProfilerObject->config, "a config image changed before Disable");
    if (p->pRangeProfilerObject->data && p->pRangeProfilerObject->data[0] != 1)
        broke("a counter data image changed before Disable");
    free(p->pRangeProfilerObject);
    fake.profiler = NULL;
    fake.objects--;
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
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (r->started || (r->configured && !fake.failed && r->pass != fake.script.passes))
        return CUPTI_ERROR_INVALID_OPERATION;
    keep_look(&r->config, "a config image changed before the next one");
    r->configured = true;
    r->config = keep(p->pConfig, p->configSize);
    r->data = p->pCounterDataImage;
    r->limit = (int)p->maxRangesPerPass;
    r->pass = r->ranges = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    ENTER(cuptiRangeProfilerStart);
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (!r->configured || r->started || r->pass >= fake.script.passes)
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
    if (!fake.failed && r->pass > 0 && r->pass_ranges != r->ranges)
        broke("passes with different ranges");
    r->ranges = r->pass_ranges;
    p->isAllPassSubmitted = ++r->pass == fake.script.passes;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p)
{
    ENTER(cuptiRangeProfilerPushRange);
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (!r->started || r->pushed || r->pass_ranges >= r->limit)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (r->pass > 0 && strcmp(r->names[r->pass_ranges], p->pRangeName) != 0)
        broke("passes with different names");
    snprintf(r->names[r->pass_ranges], sizeof(r->names[0]), "%s", p->pRangeName);
    r->pass_ranges++;
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
    struct CUpti_RangeProfiler_Object *r = p->pRangeProfilerObject;
    if (r->pass != fake.script.passes)
        broke("cuptiRangeProfilerDecodeData before all passes");
    /* A range without a kernel is not there, and is not reported as dropped either. */
    r->seen_count = 0;
    for (int k = 0; k < r->ranges; k++) {
        bool idle = r->limit > 1 && fake.script.idle_range &&
                    strcmp(r->names[k], fake.script.idle_range) == 0;
        if (!idle)
            r->seen[r->seen_count++] = k;
    }
    p->numOfRangeDropped = (size_t)fake.script.dropped_ranges;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    ENTER(cuptiRangeProfilerGetCounterDataInfo);
    p->numTotalRanges = (size_t)fake.profiler->seen_count;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *p)
{
    ENTER(cuptiRangeProfilerCounterDataGetRangeInfo);
    p->rangeName = fake.profiler->names[fake.profiler->seen[p->rangeIndex]];
    return CUPTI_SUCCESS;
}

/* ---- samples ---- */

PUBLIC CUptiResult
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterAvailability);
    needs_profiler("cuptiPmSamplingGetCounterAvailability too early");
    if (fake.profiler || fake.sampler)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->counterAvailabilityImageSize = 16;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *p)
{
    ENTER(cuptiPmSamplingEnable);
    needs_profiler("cuptiPmSamplingEnable too early");
    if (fake.sampler)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pPmSamplingObject = fake.sampler = calloc(1, sizeof(*fake.sampler));
    fake.objects++;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *p)
{
    if (p->pPmSamplingObject->started)
        broke("cuptiPmSamplingDisable between start and stop");
    keep_look(&p->pPmSamplingObject->config, "a config image changed before Disable");
    free(p->pPmSamplingObject);
    fake.sampler = NULL;
    fake.objects--;
    ENTER(cuptiPmSamplingDisable);
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *p)
{
    ENTER(cuptiPmSamplingSetConfig);
    bool timer = p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    if (timer &&
        (strncmp(fake.script.chip, "TU", 2) == 0 || strcmp(fake.script.chip, "GA100") == 0))
        return CUPTI_ERROR_NOT_SUPPORTED;
    p->pPmSamplingObject->configured = true;
    p->pPmSamplingObject->config = keep(p->pConfig, p->configSize);
    p->pPmSamplingObject->interval = p->samplingInterval;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterDataSize);
    p->pPmSamplingObject->limit = p->maxSamples;
    p->counterDataSize = 64;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
    ENTER(cuptiPmSamplingCounterDataImageInitialize);
    memset(p->pCounterData, 1, p->counterDataSize);
    p->pPmSamplingObject->cleared = true;
    fake.image_samples = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *p)
{
    ENTER(cuptiPmSamplingStart);
    if (!p->pPmSamplingObject->configured || p->pPmSamplingObject->started)
        return CUPTI_ERROR_INVALID_OPERATION;
    p->pPmSamplingObject->started = true;
    fake.sampled_replays = -device_replays();
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *p)
{
    p->pPmSamplingObject->started = false;
    ENTER(cuptiPmSamplingStop);
    struct CUpti_PmSampling_Object *s = p->pPmSamplingObject;
    s->left =
        fake.script.run_ns > 0 ? (size_t)(fake.script.run_ns / (double)s->interval) : FAKE_SAMPLES;
    fake.sampled_replays += device_replays();
    return CUPTI_SUCCESS;
}

/* An image that is full ends the decoding, and what comes between it and the next is lost. */
PUBLIC CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *p)
{
    ENTER(cuptiPmSamplingDecodeData);
    struct CUpti_PmSampling_Object *s = p->pPmSamplingObject;
    if (!s->cleared)
        broke("cuptiPmSamplingDecodeData into a used image");
    s->cleared = false;
    p->overflow = (uint8_t)fake.script.overflow;
    if (p->overflow)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    fake.image_samples = s->left < s->limit ? s->left : s->limit;
    p->decodeStopReason = s->left > s->limit
                              ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                              : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    s->left = 0;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
    ENTER(cuptiPmSamplingGetCounterDataInfo);
    p->numTotalSamples = fake.sampler->limit;
    p->numPopulatedSamples = p->numCompletedSamples = fake.image_samples;
    return CUPTI_SUCCESS;
}
