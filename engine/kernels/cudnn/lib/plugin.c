/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the plug-in and its table: one kernel per file of engine/kernels/cudnn/. */
#include "base/system/library.h"
#include "engine/kernels/cudnn/lib/api.h"

#define X(name) extern const struct kernel kernel_cudnn_##name;
#include "cudnn_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cudnn_##name,
#include "cudnn_list.inc"
#undef X
};

static char version[64];

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "cudnn",
    .version = version,
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    if (host->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers */
    cudnn_host = host;
    /* Before cuDNN, whose parts are some 500 MB: without a driver they are of no use. */
    struct error absent;
    void *driver;
    if (library_open_one("libcuda.so.1", &driver, &absent) != STATUS_OK) {
        REFUSE(why, "no CUDA driver (%s): install NVIDIA's driver, or use --device cpu",
               absent.message);
        return NULL;
    }
    if (cudnn_api_open(&cudnn, why) != STATUS_OK)
        return NULL;
    cudnn_version_text(&cudnn, version, sizeof(version));
    return &table;
}
