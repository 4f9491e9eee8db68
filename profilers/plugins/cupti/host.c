/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's host side: which metrics a chip has, how they are put into passes, and what the
 * counted data mean. Needs neither driver nor device when the chip is given by name. */
#include "profilers/plugins/cupti/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUpti_ProfilerType type_of(enum cupti_use use)
{
    return use == CUPTI_SAMPLES ? CUPTI_PROFILER_TYPE_PM_SAMPLING
                                : CUPTI_PROFILER_TYPE_RANGE_PROFILER;
}

static void host_close(struct cupti *cupti, CUpti_Profiler_Host_Object *host)
{
    PARAMS(CUpti_Profiler_Host_Deinitialize, p);
    p.pHostObject = host;
    if (host)
        cupti->api.cuptiProfilerHostDeinitialize(&p);
}

static bool host_open(struct cupti *cupti, const struct cupti_wanted *wanted,
                      const uint8_t *availability, CUpti_Profiler_Host_Object **host, char *reason)
{
    PARAMS(CUpti_Profiler_Host_Initialize, p);
    p.profilerType = type_of(wanted->use);
    p.pChipName = wanted->chip;
    p.pCounterAvailabilityImage = availability;
    if (!CUPTI_OK(cupti, reason, cuptiProfilerHostInitialize, &p))
        return false;
    *host = p.pHostObject;
    return true;
}

const char *const *cupti_chips(struct cupti *cupti, int *count, char *reason)
{
    PARAMS(CUpti_Profiler_Host_GetSupportedChips, p);
    if (!CUPTI_OK(cupti, reason, cuptiProfilerHostGetSupportedChips, &p))
        return NULL;
    *count = (int)p.numChips;
    return p.ppChipNames;
}

static bool properties(struct cupti *cupti, CUpti_Profiler_Host_Object *host, const char *name,
                       const char **text, char *reason)
{
    char why[CUPTI_REASON];
    PARAMS(CUpti_Profiler_Host_GetMetricProperties, p);
    p.pHostObject = host;
    p.pMetricName = name;
    if (!CUPTI_OK(cupti, why, cuptiProfilerHostGetMetricProperties, &p))
        return cupti_say(reason, "metric %.100s: %.320s", name, why);
    *text = p.pDescription ? p.pDescription : "";
    return true;
}

bool cupti_describe(struct cupti *cupti, const struct cupti_wanted *wanted, int index, char *text,
                    size_t size, char *reason)
{
    const char *described = "";
    CUpti_Profiler_Host_Object *host = NULL;
    if (!host_open(cupti, wanted, NULL, &host, reason))
        return false;
    bool known = properties(cupti, host, wanted->metrics[index], &described, reason);
    snprintf(text, size, "%s", described);
    host_close(cupti, host);
    return known;
}

/* ---- a config ---- */

bool cupti_range_availability(struct cupti *cupti, uint8_t **image, char *reason)
{
    PARAMS(CUpti_Profiler_GetCounterAvailability, p);
    p.ctx = cupti->context;
    if (!CUPTI_OK(cupti, reason, cuptiProfilerGetCounterAvailability, &p))
        return false;
    *image = calloc(1, p.counterAvailabilityImageSize + 1);
    p.pCounterAvailabilityImage = *image;
    return *image ? CUPTI_OK(cupti, reason, cuptiProfilerGetCounterAvailability, &p)
                  : cupti_say(reason, "out of memory");
}

static bool sample_availability(struct cupti *cupti, uint8_t **image, char *reason)
{
    PARAMS(CUpti_PmSampling_GetCounterAvailability, p);
    p.deviceIndex = (size_t)cupti->index;
    if (!CUPTI_OK(cupti, reason, cuptiPmSamplingGetCounterAvailability, &p))
        return false;
    *image = calloc(1, p.counterAvailabilityImageSize + 1);
    p.pCounterAvailabilityImage = *image;
    return *image ? CUPTI_OK(cupti, reason, cuptiPmSamplingGetCounterAvailability, &p)
                  : cupti_say(reason, "out of memory");
}

static bool keep_names(struct cupti_config *config, const struct cupti_wanted *wanted, char *reason)
{
    config->names = calloc((size_t)wanted->count + 1, sizeof(*config->names));
    if (!config->names)
        return cupti_say(reason, "out of memory");
    for (int k = 0; k < wanted->count; k++) {
        const char *unused;
        config->names[k] = strdup(wanted->metrics[k]);
        if (!config->names[k])
            return cupti_say(reason, "out of memory");
        config->count++;
        if (!properties(config->cupti, config->host, config->names[k], &unused, reason))
            return false;
    }
    return true;
}

static const char **name_list(const struct cupti_config *config)
{
    return (const char **)(void *)config->names;
}

/* The image that tells the device what to count, and its passes. */
static bool schedule(struct cupti_config *config, char *reason)
{
    struct cupti *cupti = config->cupti;
    PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, add);
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize, size);
    PARAMS(CUpti_Profiler_Host_GetConfigImage, image);
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses, passes);
    add.pHostObject = size.pHostObject = image.pHostObject = config->host;
    add.ppMetricNames = name_list(config);
    add.numMetrics = (size_t)config->count;
    if (!CUPTI_OK(cupti, reason, cuptiProfilerHostConfigAddMetrics, &add) ||
        !CUPTI_OK(cupti, reason, cuptiProfilerHostGetConfigImageSize, &size))
        return false;
    config->size = image.configImageSize = passes.configImageSize = size.configImageSize;
    config->image = image.pConfigImage = passes.pConfigImage = calloc(1, config->size + 1);
    if (!config->image)
        return cupti_say(reason, "out of memory");
    if (!CUPTI_OK(cupti, reason, cuptiProfilerHostGetConfigImage, &image) ||
        !CUPTI_OK(cupti, reason, cuptiProfilerHostGetNumOfPasses, &passes))
        return false;
    config->passes = (int)passes.numOfPasses;
    if (config->use == CUPTI_SAMPLES && config->passes != 1)
        return cupti_say(reason, "%d passes are needed, and sampling has one: take metrics away",
                         config->passes);
    return true;
}

static bool fill(struct cupti_config *config, const struct cupti_wanted *wanted, char *reason)
{
    uint8_t *availability = NULL;
    const uint8_t *held = config->cupti->held.availability;
    bool known = true;
    if (wanted->attached && wanted->use == CUPTI_SAMPLES)
        known = sample_availability(config->cupti, &availability, reason);
    else if (wanted->attached && !held)
        known = cupti_range_availability(config->cupti, &availability, reason);
    bool open = known && host_open(config->cupti, wanted, availability ? availability : held,
                                   &config->host, reason);
    bool done = open && keep_names(config, wanted, reason) && schedule(config, reason);
    free(availability);
    return done;
}

struct cupti_config *cupti_config_open(struct cupti *cupti, const struct cupti_wanted *wanted,
                                       char *reason)
{
    struct cupti_config *config = calloc(1, sizeof(*config));
    if (!config) {
        cupti_say(reason, "out of memory");
        return NULL;
    }
    config->cupti = cupti;
    config->use = wanted->use;
    snprintf(config->chip, sizeof(config->chip), "%s", wanted->chip);
    if (fill(config, wanted, reason))
        return config;
    cupti_config_close(config);
    return NULL;
}

int cupti_config_passes(const struct cupti_config *config)
{
    return config->passes;
}

void cupti_config_close(struct cupti_config *config)
{
    host_close(config->cupti, config->host);
    for (int k = 0; k < config->count; k++)
        free(config->names[k]);
    free(config->names);
    free(config->image);
    free(config);
}

bool cupti_evaluate(const struct cupti_config *config, const uint8_t *data, size_t size,
                    size_t index, double *values, char *reason)
{
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues, p);
    p.pHostObject = config->host;
    p.pCounterDataImage = data;
    p.counterDataImageSize = size;
    p.rangeIndex = index;
    p.ppMetricNames = name_list(config);
    p.numMetrics = (size_t)config->count;
    p.pMetricValues = values;
    return CUPTI_OK(config->cupti, reason, cuptiProfilerHostEvaluateToGpuValues, &p);
}
