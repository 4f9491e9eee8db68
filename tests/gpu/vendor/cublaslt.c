/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuBLASLt plug-in over a library that multiplies on the host (tests/gpu/fake_cublaslt.c), with
 * a device whose memory is the host's: its kernels can be run on every case, between guard zones
 * and in executables, on a machine without a GPU. */
#include "tests/gpu/fake_cublaslt.h"
#include "tests/gpu/fake_device.h"

extern const struct kernel kernel_cublaslt_matmul, kernel_cublaslt_matmul_f8,
    kernel_cublaslt_matmul_bytes, kernel_cublaslt_attention;

static const struct kernel *const kernels[] = {&kernel_cublaslt_matmul, &kernel_cublaslt_matmul_f8,
                                               &kernel_cublaslt_matmul_bytes,
                                               &kernel_cublaslt_attention};
static const struct device_kind *const devices[] = {&fake_device_kind};

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "cublaslt",
    .version = "on the host",
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
    .devices = devices,
    .device_count = ARRAY_COUNT(devices),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    (void)why;
    cublaslt_host = host;
    fake_reset(0);
    fake_cublaslt(&cublaslt);
    return &table;
}
