/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cublaslt/lib/api.h"

#include <stdio.h>
#include <string.h>

#include "base/system/library.h"

enum { DEVICES_MAX = 16 };

struct cublaslt_api cublaslt;
const struct plugin_host *cublaslt_host;
static _Thread_local cublasLtHandle_t handles[DEVICES_MAX];

static const struct library_symbol symbols[] = {
#define X(field, symbol) {#symbol, offsetof(struct cublaslt_api, field)},
    CUBLASLT_CALLS(X)
#undef X
};

static const char *const fields[] = {
#define X(field, symbol) #field,
    CUBLASLT_CALLS(X)
#undef X
};

enum status cublaslt_api_open(struct cublaslt_api *api, struct error *why)
{
    struct error absent;
    void *library;
    char file[32];
    snprintf(file, sizeof(file), "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    if (library_open_one(file, &library, &absent) != STATUS_OK)
        return REFUSE(why, "%s: install cuBLAS %d, or put its folder into LD_LIBRARY_PATH",
                      absent.message, CUBLAS_VER_MAJOR);
    const char *missing = library_fill(library, symbols, ARRAY_COUNT(symbols), api);
    if (missing)
        return REFUSE(why, "%s has no %s: a newer one is needed", file, missing);
    return STATUS_OK;
}

/* The function's own name: of "cublaslt.matmul(handle, ...)" cublasLtMatmul. */
static const char *symbol_of(const char *call)
{
    static const char prefix[] = "cublaslt.";
    if (strncmp(call, prefix, sizeof(prefix) - 1) != 0)
        return call;
    call += sizeof(prefix) - 1;
    size_t length = strcspn(call, "(");
    for (int k = 0; k < ARRAY_COUNT(fields); k++)
        if (strlen(fields[k]) == length && strncmp(fields[k], call, length) == 0)
            return symbols[k].name;
    return call;
}

/* A value that is invalid counts as refused, so that another kernel computes it; the reason has the
 * status's name, and tools/test_gpu.sh fails on it. */
static enum status code_of(cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return STATUS_NO_MEMORY;
    bool refusal = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                   status == CUBLAS_STATUS_ARCH_MISMATCH;
    return refusal ? STATUS_UNSUPPORTED : STATUS_FAILED;
}

enum status cublaslt_refuse(struct error *why, cublasStatus_t status, const char *call)
{
    return cublaslt_host->refuse(why, code_of(status), "%.80s: %s (%d)", symbol_of(call),
                                 cublaslt.status_name(status), (int)status);
}

enum status cublaslt_handle(const struct device *device, cublasLtHandle_t *handle,
                            struct error *why)
{
    if (!device || device->index < 0 || device->index >= DEVICES_MAX)
        return REFUSE(why, "no device, or one beyond the first %d", DEVICES_MAX);
    cublasLtHandle_t *own = &handles[device->index];
    if (!*own)
        CUBLASLT_TRY(cublaslt.handle_new(own), why);
    *handle = *own;
    return STATUS_OK;
}

void cublaslt_handles_release(void)
{
    for (int k = 0; k < DEVICES_MAX; k++) {
        if (handles[k])
            cublaslt.handle_free(handles[k]);
        handles[k] = NULL;
    }
}
