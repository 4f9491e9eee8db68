/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plug-in offers. */
#include "profilers/plugins/cupti/api.h"

static int version_of(const struct cupti *cupti)
{
    return (int)cupti->version;
}

static const struct cupti_backend backend = {
    .abi = CUPTI_BACKEND_ABI,
    .built = CUPTI_API_VERSION,
    .open = cupti_open,
    .version = version_of,
    .close = cupti_close,
    .ready = cupti_ready,
    .chips = cupti_chips,
    .describe = cupti_describe,
    .config_open = cupti_config_open,
    .config_passes = cupti_config_passes,
    .config_close = cupti_config_close,
    .attach = cupti_attach,
    .synchronise = cupti_synchronise,
    .hold = cupti_hold,
    .ranges_open = cupti_ranges_open,
    .ranges_start = cupti_ranges_start,
    .ranges_push = cupti_ranges_push,
    .ranges_pop = cupti_ranges_pop,
    .ranges_stop = cupti_ranges_stop,
    .ranges_decode = cupti_ranges_decode,
    .ranges_read = cupti_ranges_read,
    .ranges_close = cupti_ranges_close,
    .sampler_open = cupti_sampler_open,
    .sampler_start = cupti_sampler_start,
    .sampler_stop = cupti_sampler_stop,
    .sampler_close = cupti_sampler_close,
    .tracer_open = cupti_tracer_open,
    .tracer_start = cupti_tracer_start,
    .tracer_drop = cupti_tracer_drop,
    .tracer_stop = cupti_tracer_stop,
    .tracer_close = cupti_tracer_close,
};

const struct cupti_backend *ridge_cupti(void)
{
    return &backend;
}
