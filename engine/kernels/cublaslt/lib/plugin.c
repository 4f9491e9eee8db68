/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the plug-in and its table: one kernel per file of engine/kernels/cublaslt/. */
#include <stdio.h>

#include "base/system/library.h"
#include "engine/kernels/cublaslt/lib/api.h"
#include "engine/kernels/cublaslt/lib/gemm_roof.h"

#define X(name) extern const struct kernel kernel_cublaslt_##name;
#include "cublaslt_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cublaslt_##name,
#include "cublaslt_list.inc"
#undef X
};

static const struct roof_group *const roofs[] = {&cublaslt_gemm_roofs};

static char version[32];

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "cublaslt",
    .version = version,
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
    .roofs = roofs,
    .roof_group_count = ARRAY_COUNT(roofs),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    if (host->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers */
    cublaslt_host = host;
    /* Before cuBLASLt, which has 500 MB: without a driver it is of no use. */
    struct error absent;
    void *driver;
    if (library_open_one("libcuda.so.1", &driver, &absent) != STATUS_OK) {
        REFUSE(why, "no CUDA driver (%s): install NVIDIA's driver, or use --device cpu",
               absent.message);
        return NULL;
    }
    if (cublaslt_api_open(&cublaslt, why) != STATUS_OK)
        return NULL;
    size_t number = cublaslt.version();
    snprintf(version, sizeof(version), "%zu.%zu.%zu", number / 10000, number / 100 % 100,
             number % 100);
    return &table;
}
