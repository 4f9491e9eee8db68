/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/library.h"

struct cudnn_api cudnn;
const struct plugin_host *cudnn_host;

static const struct library_symbol symbols[] = {
#define X(field, symbol) {#symbol, offsetof(struct cudnn_api, field)},
    CUDNN_CALLS(X)
#undef X
};

static const char *const fields[] = {
#define X(field, symbol) #field,
    CUDNN_CALLS(X)
#undef X
};

enum status cudnn_api_open(struct cudnn_api *api, struct error *why)
{
    struct error absent;
    void *library;
    if (library_open_one("libcudnn.so.9", &library, &absent) != STATUS_OK)
        return REFUSE(why, "%s: install cuDNN 9, or put its folder into LD_LIBRARY_PATH",
                      absent.message);
    const char *missing = library_fill(library, symbols, ARRAY_COUNT(symbols), api);
    if (missing)
        return REFUSE(why, "libcudnn.so.9 has no %s: a newer one is needed (built for %d.%d)",
                      missing, CUDNN_MAJOR, CUDNN_MINOR);
    return cudnn_version_check(api->version(), why);
}

enum status cudnn_version_check(size_t version, struct error *why)
{
    if (version / 10000 != CUDNN_MAJOR || version < CUDNN_LEAST)
        return REFUSE(why, "libcudnn.so.9 is version %zu.%zu.%zu: 9.13.1 or newer is needed",
                      version / 10000, version / 100 % 100, version % 100);
    return STATUS_OK;
}

void cudnn_version_text(const struct cudnn_api *api, char *text, size_t size)
{
    const char *elsewhere = getenv("RIDGE_NVRTC");
    char compiler[32];
    size_t version = api->version();
    snprintf(compiler, sizeof(compiler), "libnvrtc.so.%zu", api->cudart_version() / 1000);
    void *library;
    bool there = library_open_one(elsewhere ? elsewhere : compiler, &library, NULL) == STATUS_OK;
    snprintf(text, size, "%zu.%zu.%zu%s%s", version / 10000, version / 100 % 100, version % 100,
             there ? "" : " without ", there ? "" : compiler);
}

/* The function's own name: of "cudnn.set_stream(handle, stream)" cudnnSetStream. */
static const char *symbol_of(const char *call)
{
    static const char prefix[] = "cudnn.";
    size_t length = strcspn(call, "(");
    if (strncmp(call, prefix, sizeof(prefix) - 1) != 0)
        return call;
    call += sizeof(prefix) - 1;
    length -= sizeof(prefix) - 1;
    for (int k = 0; k < ARRAY_COUNT(fields); k++)
        if (strlen(fields[k]) == length && strncmp(fields[k], call, length) == 0)
            return symbols[k].name;
    return call;
}

/* What is ill-formed counts as refused, so that another kernel computes it; the reason has the
 * status's name, and tools/test_gpu.sh and tests/gpu/support.c fail on it. */
static enum status code_of(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        return STATUS_NO_MEMORY;
    int category = CUDNN_STATUS_CATEGORY((int)status);
    bool refusal = category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
    return refusal ? STATUS_UNSUPPORTED : STATUS_FAILED;
}

enum status cudnn_refuse(struct error *why, cudnnStatus_t status, const char *call)
{
    char detail[160] = "";
    cudnn.last_error(detail, sizeof(detail));
    detail[sizeof(detail) - 1] = 0;
    detail[strcspn(detail, "\n")] = 0;
    return cudnn_host->refuse(why, code_of(status), "%.80s: %s (%d)%s%s", symbol_of(call),
                              cudnn.error_string(status), (int)status, detail[0] ? ": " : "",
                              detail);
}
