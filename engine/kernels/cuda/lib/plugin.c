/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the plug-in and its table: the device, one kernel per file of engine/kernels/cuda/,
 * the roofs of those in roofs/. It loads also where there is no driver, so that the device can say
 * what is missing; and it does not ask the driver yet, whose state no fork survives. */
#include <stdio.h>

#include "engine/kernels/cuda/lib/cuda.h"

#define X(name) extern const struct kernel kernel_cuda_##name;
#include "cuda_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cuda_##name,
#include "cuda_list.inc"
#undef X
};

#define X(name) extern const struct roof_group roof_group_cuda_##name;
#include "cuda_roof_list.inc"
#undef X

static const struct roof_group *const roofs[] = {
#define X(name) &roof_group_cuda_##name,
#include "cuda_roof_list.inc"
#undef X
};

static const struct device_kind *const devices[] = {&cuda_device};

const struct plugin_host *cuda_host;
static char version[32];

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "cuda",
    .version = version,
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
    .devices = devices,
    .device_count = ARRAY_COUNT(devices),
    .roofs = roofs,
    .roof_group_count = ARRAY_COUNT(roofs),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    int runtime = 0;
    if (host->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers */
    if (host->size < sizeof(struct plugin_host)) {
        host->refuse(why, STATUS_UNSUPPORTED, "needs a newer ridge");
        return NULL;
    }
    cuda_host = host;
    cuda_api.runtime_version(&runtime);
    snprintf(version, sizeof(version), "%d.%d", runtime / 1000, runtime % 1000 / 10);
    return &table;
}
