/* SPDX-License-Identifier: Apache-2.0
 *
 * Range profiling: counters count between push and pop. The caller says where a range begins and
 * repeats the same work for every pass; ranges are not nested. Both images must live until the
 * profiler is disabled. */
#include "profilers/plugins/cupti/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cupti_ranges {
    struct cupti_config *config; /* borrowed */
    CUpti_RangeProfiler_Object *profiler;
    uint8_t *image; /* owned: what the config's says */
    uint8_t *data;  /* owned: the counter data image */
    size_t size;
    bool configured, started, pushed;
};

/* ---- counters that are enabled before kernels are loaded ---- */

static bool enable(struct cupti *cupti, CUpti_RangeProfiler_Object **profiler, char *reason)
{
    PARAMS(CUpti_RangeProfiler_Enable, p);
    p.ctx = cupti->context;
    if (!CUPTI_OK(cupti, reason, cuptiRangeProfilerEnable, &p))
        return false;
    *profiler = p.pRangeProfilerObject;
    return true;
}

static void disable(struct cupti *cupti, CUpti_RangeProfiler_Object *profiler)
{
    PARAMS(CUpti_RangeProfiler_Disable, p);
    p.pRangeProfilerObject = profiler;
    cupti->api.cuptiRangeProfilerDisable(&p);
}

bool cupti_hold(struct cupti *cupti, char *reason)
{
    if (cupti_range_availability(cupti, &cupti->held.availability, reason) &&
        enable(cupti, &cupti->held.profiler, reason))
        return true;
    cupti_let_go(cupti);
    return false;
}

static void forget_images(struct held *held)
{
    free(held->config);
    free(held->data);
    held->config = held->data = NULL;
}

void cupti_let_go(struct cupti *cupti)
{
    if (cupti->held.profiler)
        disable(cupti, cupti->held.profiler);
    forget_images(&cupti->held);
    free(cupti->held.availability);
    cupti->held = (struct held){.profiler = NULL};
}

/* ---- ranges ---- */

static bool make_data(struct cupti_ranges *r, int ranges_max, char *reason)
{
    PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
    PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, init);
    size.pRangeProfilerObject = init.pRangeProfilerObject = r->profiler;
    size.pMetricNames = (const char **)(void *)r->config->names;
    size.numMetrics = (size_t)r->config->count;
    size.maxNumOfRanges = (size_t)ranges_max;
    size.maxNumRangeTreeNodes = (uint32_t)ranges_max;
    if (!CUPTI_OK(r->config->cupti, reason, cuptiRangeProfilerGetCounterDataSize, &size))
        return false;
    r->size = init.counterDataSize = size.counterDataSize;
    r->data = init.pCounterData = calloc(1, r->size + 1);
    if (!r->data)
        return cupti_say(reason, "out of memory");
    return CUPTI_OK(r->config->cupti, reason, cuptiRangeProfilerCounterDataImageInitialize, &init);
}

static bool set_config(struct cupti_ranges *r, int ranges_max, char *reason)
{
    PARAMS(CUpti_RangeProfiler_SetConfig, p);
    p.pRangeProfilerObject = r->profiler;
    p.configSize = r->config->size;
    p.pConfig = r->image;
    p.counterDataImageSize = r->size;
    p.pCounterDataImage = r->data;
    p.range = CUPTI_UserRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = (size_t)ranges_max;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.passIndex = 0;
    p.targetNestingLevel = 1;
    if (!CUPTI_OK(r->config->cupti, reason, cuptiRangeProfilerSetConfig, &p))
        return false;
    forget_images(&r->config->cupti->held); /* of the ranges before */
    r->configured = true;
    return true;
}

static bool copy_image(struct cupti_ranges *r, char *reason)
{
    r->image = malloc(r->config->size + 1);
    if (!r->image)
        return cupti_say(reason, "out of memory");
    memcpy(r->image, r->config->image, r->config->size);
    return true;
}

struct cupti_ranges *cupti_ranges_open(struct cupti_config *config, int ranges_max, char *reason)
{
    struct cupti_ranges *r = calloc(1, sizeof(*r));
    if (!r) {
        cupti_say(reason, "out of memory");
        return NULL;
    }
    r->config = config;
    r->profiler = config->cupti->held.profiler;
    if (!r->profiler && !enable(config->cupti, &r->profiler, reason)) {
        free(r);
        return NULL;
    }
    if (copy_image(r, reason) && make_data(r, ranges_max, reason) &&
        set_config(r, ranges_max, reason))
        return r;
    cupti_ranges_close(r);
    return NULL;
}

bool cupti_ranges_start(struct cupti_ranges *ranges, char *reason)
{
    PARAMS(CUpti_RangeProfiler_Start, p);
    p.pRangeProfilerObject = ranges->profiler;
    ranges->started = CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerStart, &p);
    return ranges->started;
}

bool cupti_ranges_push(struct cupti_ranges *ranges, const char *name, char *reason)
{
    PARAMS(CUpti_RangeProfiler_PushRange, p);
    p.pRangeProfilerObject = ranges->profiler;
    p.pRangeName = name;
    ranges->pushed = CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerPushRange, &p);
    return ranges->pushed;
}

bool cupti_ranges_pop(struct cupti_ranges *ranges, char *reason)
{
    PARAMS(CUpti_RangeProfiler_PopRange, p);
    p.pRangeProfilerObject = ranges->profiler;
    ranges->pushed = false;
    return CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerPopRange, &p);
}

bool cupti_ranges_stop(struct cupti_ranges *ranges, bool *complete, char *reason)
{
    PARAMS(CUpti_RangeProfiler_Stop, p);
    p.pRangeProfilerObject = ranges->profiler;
    ranges->started = false;
    if (!CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerStop, &p))
        return false;
    *complete = p.isAllPassSubmitted;
    return true;
}

bool cupti_ranges_decode(struct cupti_ranges *ranges, int *count, char *reason)
{
    PARAMS(CUpti_RangeProfiler_DecodeData, decode);
    PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
    decode.pRangeProfilerObject = ranges->profiler;
    info.pCounterDataImage = ranges->data;
    info.counterDataImageSize = ranges->size;
    if (!CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerDecodeData, &decode))
        return false;
    if (decode.numOfRangeDropped)
        return cupti_say(reason, "CUPTI dropped %zu ranges: too many in a pass",
                         decode.numOfRangeDropped);
    if (!CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerGetCounterDataInfo, &info))
        return false;
    *count = (int)info.numTotalRanges;
    return true;
}

bool cupti_ranges_read(struct cupti_ranges *ranges, int index, char *name, size_t size,
                       double *values, char *reason)
{
    PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo, p);
    p.pCounterDataImage = ranges->data;
    p.counterDataImageSize = ranges->size;
    p.rangeIndex = (size_t)index;
    p.rangeDelimiter = "/";
    if (!CUPTI_OK(ranges->config->cupti, reason, cuptiRangeProfilerCounterDataGetRangeInfo, &p))
        return false;
    snprintf(name, size, "%s", p.rangeName ? p.rangeName : "");
    return cupti_evaluate(ranges->config, ranges->data, ranges->size, (size_t)index, values,
                          reason);
}

/* What is held may read the images that it was given until it is given others. */
static void end_images(struct cupti_ranges *r, struct held *held)
{
    if (held->profiler && r->configured) {
        held->config = r->image;
        held->data = r->data;
        return;
    }
    free(r->image);
    free(r->data);
}

void cupti_ranges_close(struct cupti_ranges *ranges)
{
    char unused[CUPTI_REASON];
    bool complete;
    struct cupti *cupti = ranges->config->cupti;
    if (ranges->pushed)
        cupti_ranges_pop(ranges, unused);
    if (ranges->started)
        cupti_ranges_stop(ranges, &complete, unused);
    if (!cupti->held.profiler)
        disable(cupti, ranges->profiler);
    end_images(ranges, &cupti->held);
    free(ranges);
}
