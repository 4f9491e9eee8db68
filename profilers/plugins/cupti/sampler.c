/* SPDX-License-Identifier: Apache-2.0
 *
 * PM sampling: the device writes its counters into a buffer at intervals while everything runs as
 * always. The buffer keeps the oldest samples and is read once, after the run, into an image that
 * takes all of them: an overflow of either is known, and an error. Reading on after a full image
 * would lose the samples between. */
#define _GNU_SOURCE
#include "profilers/plugins/cupti/api.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { METRICS_MAX = 64 };

static const size_t buffer_bytes = 512UL
                                   << 20; /* of the host's memory, as NVIDIA's sample has it */

struct cupti_sampler {
    struct cupti_config *config; /* borrowed */
    CUpti_PmSampling_Object *sampler;
    uint8_t *data; /* owned: the counter data image */
    size_t size;
    uint64_t interval_ns;
    bool started;
};

/* Turing and GA100 have no trigger in nanoseconds; cycles of their system clock, somewhat above
 * 1 GHz, take its place: sums do not depend on the interval. */
static bool has_timer(const char *chip)
{
    return strncmp(chip, "TU", 2) != 0 && strcmp(chip, "GA100") != 0;
}

static bool set_config(struct cupti_sampler *s, char *reason)
{
    PARAMS(CUpti_PmSampling_SetConfig, p);
    p.pPmSamplingObject = s->sampler;
    p.configSize = s->config->size;
    p.pConfig = s->config->image;
    p.hardwareBufferSize = buffer_bytes;
    p.samplingInterval = s->interval_ns;
    p.triggerMode = has_timer(s->config->chip) ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
                                               : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
    p.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    return CUPTI_OK(s->config->cupti, reason, cuptiPmSamplingSetConfig, &p);
}

static bool clear_data(struct cupti_sampler *s, char *reason)
{
    PARAMS(CUpti_PmSampling_CounterDataImage_Initialize, p);
    p.pPmSamplingObject = s->sampler;
    p.counterDataSize = s->size;
    p.pCounterData = s->data;
    return CUPTI_OK(s->config->cupti, reason, cuptiPmSamplingCounterDataImageInitialize, &p);
}

static bool make_data(struct cupti_sampler *s, char *reason)
{
    PARAMS(CUpti_PmSampling_GetCounterDataSize, p);
    p.pPmSamplingObject = s->sampler;
    p.pMetricNames = (const char **)(void *)s->config->names;
    p.numMetrics = (size_t)s->config->count;
    p.maxSamples = CUPTI_SAMPLES_MAX;
    if (!CUPTI_OK(s->config->cupti, reason, cuptiPmSamplingGetCounterDataSize, &p))
        return false;
    s->size = p.counterDataSize;
    s->data = calloc(1, s->size + 1);
    return s->data ? clear_data(s, reason) : cupti_say(reason, "out of memory");
}

struct cupti_sampler *cupti_sampler_open(struct cupti_config *config, uint64_t interval_ns,
                                         char *reason)
{
    PARAMS(CUpti_PmSampling_Enable, p);
    struct cupti_sampler *s = calloc(1, sizeof(*s));
    if (!s) {
        cupti_say(reason, "out of memory");
        return NULL;
    }
    s->config = config;
    s->interval_ns = interval_ns;
    p.deviceIndex = (size_t)config->cupti->index;
    if (!CUPTI_OK(config->cupti, reason, cuptiPmSamplingEnable, &p)) {
        free(s);
        return NULL;
    }
    s->sampler = p.pPmSamplingObject;
    if (set_config(s, reason) && make_data(s, reason))
        return s;
    cupti_sampler_close(s);
    return NULL;
}

bool cupti_sampler_start(struct cupti_sampler *sampler, char *reason)
{
    PARAMS(CUpti_PmSampling_Start, p);
    p.pPmSamplingObject = sampler->sampler;
    sampler->started = CUPTI_OK(sampler->config->cupti, reason, cuptiPmSamplingStart, &p);
    return sampler->started;
}

static bool stop(struct cupti_sampler *s, char *reason)
{
    PARAMS(CUpti_PmSampling_Stop, p);
    p.pPmSamplingObject = s->sampler;
    s->started = false;
    return CUPTI_OK(s->config->cupti, reason, cuptiPmSamplingStop, &p);
}

/* Adds what the image holds. */
static bool add_samples(struct cupti_sampler *s, double *sums, int64_t *samples, char *reason)
{
    double values[METRICS_MAX];
    PARAMS(CUpti_PmSampling_GetCounterDataInfo, p);
    p.pCounterDataImage = s->data;
    p.counterDataImageSize = s->size;
    if (!CUPTI_OK(s->config->cupti, reason, cuptiPmSamplingGetCounterDataInfo, &p))
        return false;
    for (size_t k = 0; k < p.numCompletedSamples; k++) {
        if (!cupti_evaluate(s->config, s->data, s->size, k, values, reason))
            return false;
        for (int m = 0; m < s->config->count; m++)
            sums[m] += values[m];
    }
    *samples += (int64_t)p.numCompletedSamples;
    return true;
}

static bool decode(struct cupti_sampler *s, char *reason)
{
    PARAMS(CUpti_PmSampling_DecodeData, p);
    p.pPmSamplingObject = s->sampler;
    p.pCounterDataImage = s->data;
    p.counterDataImageSize = s->size;
    CUptiResult code = s->config->cupti->api.cuptiPmSamplingDecodeData(&p);
    /* Of this call it is what the manual says of records, not of the host's memory. */
    if (code == CUPTI_ERROR_OUT_OF_MEMORY || (code == CUPTI_SUCCESS && p.overflow))
        return cupti_say(reason,
                         "cuptiPmSamplingDecodeData says %d: the GPU's buffer of samples "
                         "overflowed: fewer executions in a pass",
                         (int)code);
    if (!cupti_ok(s->config->cupti, reason, "cuptiPmSamplingDecodeData", code))
        return false;
    if (p.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL)
        return cupti_say(reason,
                         "more than %d samples, one every %.3g ms, and the rest is lost: the "
                         "executions took longer than when they were timed: run again, alone",
                         CUPTI_SAMPLES_MAX, (double)s->interval_ns * 1e-6);
    return true;
}

bool cupti_sampler_stop(struct cupti_sampler *sampler, double *sums, int64_t *samples, char *reason)
{
    *samples = 0;
    if (sampler->config->count > METRICS_MAX)
        return cupti_say(reason, "more than %d metrics are sampled", METRICS_MAX);
    memset(sums, 0, (size_t)sampler->config->count * sizeof(*sums));
    /* The sample that holds the end of the work must be complete. */
    struct timespec pause = {0, 2 * (long)sampler->interval_ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    if (!stop(sampler, reason))
        return false;
    if (!decode(sampler, reason) || !add_samples(sampler, sums, samples, reason) ||
        !clear_data(sampler, reason))
        return false;
    return *samples > 0 || cupti_say(reason, "no sample was taken: the run was too short");
}

void cupti_sampler_close(struct cupti_sampler *sampler)
{
    char unused[CUPTI_REASON];
    PARAMS(CUpti_PmSampling_Disable, p);
    p.pPmSamplingObject = sampler->sampler;
    if (sampler->started)
        stop(sampler, unused);
    sampler->config->cupti->api.cuptiPmSamplingDisable(&p);
    free(sampler->data);
    free(sampler);
}
