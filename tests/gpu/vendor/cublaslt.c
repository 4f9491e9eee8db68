/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuBLASLt plug-in over a library that multiplies on the host (tests/gpu/fake_cublaslt.c): with
 * the device of tests/gpu/host/ its kernels can be run on every case, between guard zones and in
 * executables, on a machine without a GPU. */
#include "tests/gpu/fake_cublaslt.h"
#include "tests/gpu/fake_device.h"

extern const struct kernel kernel_cublaslt_matmul;

static const struct kernel *const kernels[] = {&kernel_cublaslt_matmul};

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "cublaslt",
    .version = "on the host",
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    (void)why;
    cublaslt_host = host;
    fake_reset(0);
    fake_cublaslt(&cublaslt);
    return &table;
}
