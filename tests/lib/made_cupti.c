/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/made_cupti.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/lib/group.h"

struct cupti_config {
    struct cupti *cupti;
    int passes, count;
    const char *names[GROUP_EVENTS_MAX];
};

struct cupti_ranges {
    struct cupti_config *config;
    int made, pushed;
    char names[MADE_STEPS_MAX][16];
};

struct cupti_sampler {
    struct cupti_config *config;
};

double made_number(const char *name, int range)
{
    unsigned hash = 5381;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    return 1000 + hash % 100000 + 7 * range;
}

static bool say(char *reason, const char *text)
{
    snprintf(reason, CUPTI_REASON, "%s", text);
    return false;
}

static struct cupti_config *config_open(struct cupti *cupti, const struct cupti_wanted *wanted,
                                        char *reason)
{
    for (int k = 0; k < wanted->count; k++)
        if (cupti->bad_name && strstr(wanted->metrics[k], cupti->bad_name)) {
            say(reason, "metric unknown");
            return NULL;
        }
    struct cupti_config *config = calloc(1, sizeof(*config));
    assert(config);
    config->cupti = cupti;
    config->passes = cupti->passes;
    config->count = wanted->count;
    for (int k = 0; k < wanted->count; k++)
        config->names[k] = wanted->metrics[k];
    cupti->open++;
    return config;
}

static int config_passes(const struct cupti_config *config)
{
    return config->passes;
}

static void config_close(struct cupti_config *config)
{
    config->cupti->open--;
    free(config);
}

static bool synchronise(struct cupti *cupti, char *reason)
{
    (void)cupti;
    reason[0] = '\0';
    return true;
}

static struct cupti_ranges *ranges_open(struct cupti_config *config, int limit, char *reason)
{
    assert(limit <= MADE_STEPS_MAX);
    if (config->cupti->fail_open) {
        say(reason, "cuptiRangeProfilerEnable says 35");
        return NULL;
    }
    struct cupti_ranges *ranges = calloc(1, sizeof(*ranges));
    assert(ranges);
    ranges->config = config;
    config->cupti->open++;
    return ranges;
}

static bool ranges_start(struct cupti_ranges *ranges, char *reason)
{
    ranges->pushed = 0;
    return !ranges->config->cupti->fail_start || say(reason, "no start");
}

static bool ranges_push(struct cupti_ranges *ranges, const char *name, char *reason)
{
    if (ranges->config->cupti->fail_push)
        return say(reason, "no push");
    snprintf(ranges->names[ranges->pushed++], 16, "%s", name);
    return true;
}

static bool ranges_pop(struct cupti_ranges *ranges, char *reason)
{
    (void)ranges;
    reason[0] = '\0';
    return true;
}

static bool ranges_stop(struct cupti_ranges *ranges, bool *complete, char *reason)
{
    int needed = ranges->config->cupti->needed;
    reason[0] = '\0';
    *complete = ++ranges->made == (needed < 0 ? ranges->config->passes : needed);
    return true;
}

static bool ranges_decode(struct cupti_ranges *ranges, int *count, char *reason)
{
    *count = ranges->pushed + ranges->config->cupti->extra_range;
    return !ranges->config->cupti->fail_decode || say(reason, "no data");
}

static bool ranges_read(struct cupti_ranges *ranges, int index, char *name, size_t size,
                        double *values, char *reason)
{
    reason[0] = '\0';
    snprintf(name, size, "%s", ranges->names[index]);
    for (int k = 0; k < ranges->config->count; k++)
        values[k] = ranges->config->cupti->zero ? 0 : made_number(ranges->config->names[k], index);
    return true;
}

static void ranges_close(struct cupti_ranges *ranges)
{
    ranges->config->cupti->open--;
    free(ranges);
}

static struct cupti_sampler *sampler_open(struct cupti_config *config, uint64_t interval_ns,
                                          char *reason)
{
    reason[0] = '\0';
    assert(interval_ns >= 10000 && interval_ns <= 100000000);
    struct cupti_sampler *sampler = calloc(1, sizeof(*sampler));
    assert(sampler);
    sampler->config = config;
    config->cupti->open++;
    return sampler;
}

static bool sampler_start(struct cupti_sampler *sampler, char *reason)
{
    return !sampler->config->cupti->fail_start || say(reason, "no start");
}

static bool sampler_stop(struct cupti_sampler *sampler, double *sums, int64_t *samples,
                         char *reason)
{
    reason[0] = '\0';
    *samples = 10;
    for (int k = 0; k < sampler->config->count; k++)
        sums[k] = made_number(sampler->config->names[k], 0);
    return true;
}

static void sampler_close(struct cupti_sampler *sampler)
{
    sampler->config->cupti->open--;
    free(sampler);
}

const struct cupti_backend made_backend = {.config_open = config_open,
                                           .config_passes = config_passes,
                                           .config_close = config_close,
                                           .synchronise = synchronise,
                                           .ranges_open = ranges_open,
                                           .ranges_start = ranges_start,
                                           .ranges_push = ranges_push,
                                           .ranges_pop = ranges_pop,
                                           .ranges_stop = ranges_stop,
                                           .ranges_decode = ranges_decode,
                                           .ranges_read = ranges_read,
                                           .ranges_close = ranges_close,
                                           .sampler_open = sampler_open,
                                           .sampler_start = sampler_start,
                                           .sampler_stop = sampler_stop,
                                           .sampler_close = sampler_close};
